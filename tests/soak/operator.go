// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/tests/soak/ledger"
)

const (
	// operatorLease is the operator's leader election.
	operatorLease = "c5c3-operator"
	// manyRestarts is how often the kubelet restarts a container before its pause, which doubles from
	// 10 s, would keep it away for more than a minute.
	manyRestarts = 4
	// patience is how long an operator that waits for such a restart is waited for before its pod is
	// replaced, which starts without a pause.
	patience = 30 * time.Second
)

// operator is the one that runs as a pod of the stack.
type operator struct {
	api       client.Client
	namespace string
	ledger    *ledger.Ledger

	// since is when the operator was last known dead or unknown: a Lease that is renewed later is the
	// work of one that lives.
	since time.Time
	// crashes are the ends of containers that were reported already.
	crashes map[string]bool
}

func (o *operator) mark() { o.since = time.Now() }

// kill is kill -9 of the operator's process, which the kubelet then restarts. After a number of restarts
// the kubelet takes its time, and the whole pod is killed instead: a new one starts at once.
func (o *operator) kill(ctx context.Context) (string, error) {
	pod, err := o.pod(ctx)
	if err != nil {
		return "", err
	}
	defer o.mark()
	status := pod.Status.ContainerStatuses
	if len(status) != 1 || status[0].State.Running == nil {
		return "", fmt.Errorf("pod %s does not run the operator", pod.Name)
	}
	if status[0].RestartCount >= manyRestarts {
		return "pod deleted without grace", o.deletePod(ctx, pod)
	}
	_, id, _ := strings.Cut(status[0].ContainerID, "://")
	return "SIGKILL in the pod", killContainer(id)
}

// killContainer kills the processes of a container. The control group names it, in every process
// namespace; asking the container's runtime would need its client and its socket.
func killContainer(id string) error {
	if id == "" {
		return errors.New("the operator's container has no id")
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	killed := 0
	for _, group := range groups {
		text, err := os.ReadFile(group)
		if err != nil || !strings.Contains(string(text), id) {
			continue // it ended meanwhile, or is another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(group)))
		if err != nil {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing process %d of the operator: %w", pid, err)
		}
		killed++
	}
	if killed == 0 {
		return fmt.Errorf("no process belongs to the operator's container %s", id)
	}
	return nil
}

// await waits until the operator holds its Lease and is Ready. One that the kubelet keeps waiting is
// replaced.
func (o *operator) await(ctx context.Context) error {
	began, replaced := time.Now(), false
	return within(ctx, 2*time.Minute, func(ctx context.Context) error {
		err := o.leads(ctx)
		if err == nil || replaced || time.Since(began) < patience {
			return err
		}
		pod, podErr := o.pod(ctx)
		if podErr != nil || len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
			return err
		}
		say("the kubelet keeps the operator waiting (%s): replacing its pod", pod.Status.ContainerStatuses[0].State.Waiting.Reason)
		replaced = true
		return errors.Join(err, o.deletePod(ctx, pod))
	})
}

func (o *operator) leads(ctx context.Context) error {
	pod, err := o.pod(ctx)
	if err != nil {
		return err
	}
	o.reportCrash(pod)
	lease := &coordinationv1.Lease{}
	if err := o.api.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: operatorLease}, lease); err != nil {
		return err
	}
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	switch {
	case holder == nil || !strings.HasPrefix(*holder, pod.Name) || renewed == nil || !renewed.After(o.since):
		return fmt.Errorf("pod %s does not lead yet", pod.Name)
	case !ready(pod):
		return fmt.Errorf("pod %s is not Ready", pod.Name)
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// reportCrash writes down an operator that ended by a panic or for want of memory. That it ends when it
// loses its Lease is as it should be.
func (o *operator) reportCrash(pod *corev1.Pod) {
	const goPanic = 2
	for _, status := range pod.Status.ContainerStatuses {
		last := status.LastTerminationState.Terminated
		if last == nil || o.crashes[last.ContainerID] || (last.ExitCode != goPanic && last.Reason != "OOMKilled") {
			continue
		}
		o.crashes[last.ContainerID] = true
		o.ledger.Problem(ledger.Problem{At: last.FinishedAt.Time, What: fmt.Sprintf("the operator crashed: %s, exit status %d", last.Reason, last.ExitCode)})
	}
}

// pod is the operator's only pod that is not going away.
func (o *operator) pod(ctx context.Context) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := o.api.List(ctx, pods, client.InNamespace(o.namespace), client.MatchingLabels{"app.kubernetes.io/name": "c5c3-operator"}); err != nil {
		return nil, err
	}
	var found *corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue
		}
		if found != nil {
			return nil, errors.New("the operator has two pods")
		}
		found = &pods.Items[i]
	}
	if found == nil {
		return nil, errors.New("the operator has no pod")
	}
	return found, nil
}

func (o *operator) deletePod(ctx context.Context, pod *corev1.Pod) error {
	return client.IgnoreNotFound(o.api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
}
