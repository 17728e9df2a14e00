package ordertest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
)

// KORC is how K-ORC behaves in a world.
type KORC struct {
	// Idle keeps it from doing anything.
	Idle bool
	// LetsGo makes it release deleted objects without a word to Keystone, as it does when Keystone
	// answers 503 to its question.
	LetsGo bool
	// Swallows makes its imports find nothing, as they do when their question fails.
	Swallows bool
}

const korcFinalizer = "openstack.k-orc.cloud/controller"

// PlayKORC plays one look of K-ORC at each of its objects.
func (w *World) PlayKORC() {
	w.T.Helper()
	if w.KORC.Idle {
		return
	}
	projects, roles, assignments := &orcv1alpha1.ProjectList{}, &orcv1alpha1.RoleList{}, &korcapi.RoleAssignmentList{}
	for _, list := range []client.ObjectList{projects, roles, assignments} {
		w.written(w.Client.List(w.T.Context(), list))
	}
	for i := range assignments.Items {
		w.playAssignment(&assignments.Items[i])
	}
	for i := range projects.Items {
		w.playProject(&projects.Items[i])
	}
	for i := range roles.Items {
		w.playRole(&roles.Items[i])
	}
}

// written drops what happens to one writer among several, and on a kind that is not served. K-ORC would
// come back; so does the next look.
func (w *World) written(err error) {
	w.T.Helper()
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		w.Must(err)
	}
}

// alive releases an object that is being deleted after calling gone, and tells whether K-ORC would look
// at it otherwise.
func (w *World) alive(object interface {
	client.Object
	orcv1alpha1.ObjectWithConditions
}, gone func()) bool {
	w.T.Helper()
	if !object.GetDeletionTimestamp().IsZero() {
		if !w.KORC.LetsGo {
			gone()
		}
		controllerutil.RemoveFinalizer(object, korcFinalizer)
		w.written(w.Client.Update(w.T.Context(), object))
		return false
	}
	if controllerutil.AddFinalizer(object, korcFinalizer) {
		w.written(w.Client.Update(w.T.Context(), object))
	}
	progressing := meta.FindStatusCondition(object.GetConditions(), orcv1alpha1.ConditionProgressing)
	return progressing == nil || progressing.Status == metav1.ConditionTrue
}

func (w *World) playProject(project *orcv1alpha1.Project) {
	w.T.Helper()
	id := ptr.Deref(project.Status.ID, "")
	if !w.alive(project, func() {
		if project.Spec.Resource != nil {
			w.Keystone.With(func() { delete(w.Keystone.Projects, id) })
		}
	}) {
		return
	}
	if resource := project.Spec.Resource; resource != nil {
		name := string(*resource.Name)
		if id != "" && !w.Keystone.HasProject(id) {
			GiveUp(project, &project.Status.Conditions, orcv1alpha1.ConditionReasonUnrecoverableError, deletedFromOpenStack)
			w.written(w.Client.Status().Update(w.T.Context(), project))
			return
		}
		if id == "" {
			if id = w.Keystone.FindProject(name); id == "" { // else it is adopted, whose ever it is
				id = w.Keystone.CreateProject(name, ptr.Deref(resource.Description, ""))
			}
		}
		project.Status.Resource = &orcv1alpha1.ProjectResourceStatus{Name: name}
	} else if id = w.Keystone.FindProject(string(*project.Spec.Import.Filter.Name)); w.KORC.Swallows {
		id = ""
	}
	found(project, &project.Status.Conditions, id)
	project.Status.ID = nonEmpty(id)
	w.written(w.Client.Status().Update(w.T.Context(), project))
}

func (w *World) playRole(role *orcv1alpha1.Role) {
	w.T.Helper()
	if !w.alive(role, func() {}) {
		return
	}
	id := w.Keystone.FindRole(string(*role.Spec.Import.Filter.Name))
	found(role, &role.Status.Conditions, id)
	role.Status.ID = nonEmpty(id)
	w.written(w.Client.Status().Update(w.T.Context(), role))
}

func (w *World) playAssignment(assignment *korcapi.RoleAssignment) {
	w.T.Helper()
	made := assignment.Status.Resource
	if !w.alive(assignment, func() {
		if made != nil && assignment.Spec.ManagedOptions.GetOnDelete() != orcv1alpha1.OnDeleteDetach {
			w.Keystone.Grant(made.ProjectID, made.UserID, made.RoleID, false)
		}
	}) {
		return
	}
	role, user, project := &orcv1alpha1.Role{}, &orcv1alpha1.User{}, &orcv1alpha1.Project{}
	in := func(name orcv1alpha1.KubernetesNameRef) types.NamespacedName {
		return types.NamespacedName{Namespace: assignment.Namespace, Name: string(name)}
	}
	resource := assignment.Spec.Resource
	if w.Get(in(resource.RoleRef), role) && w.Get(in(*resource.UserRef), user) && w.Get(in(*resource.ProjectRef), project) && role.Status.ID != nil {
		made = &korcapi.RoleAssignmentResourceStatus{RoleID: *role.Status.ID, UserID: *user.Status.ID, ProjectID: *project.Status.ID}
		w.Keystone.Grant(made.ProjectID, made.UserID, made.RoleID, true)
		assignment.Status.Resource = made
		found(assignment, &assignment.Status.Conditions, "-")
		w.written(w.Client.Status().Update(w.T.Context(), assignment))
	}
}

// found sets K-ORC's conditions of an object whose id is known, or is waited for.
func found(object client.Object, conditions *[]metav1.Condition, id string) {
	if id == "" {
		report(object, conditions, false, true, orcv1alpha1.ConditionReasonProgressing, "Waiting for OpenStack resource to be created externally")
		return
	}
	report(object, conditions, true, false, orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is available")
}

// GiveUp sets the conditions of an object that K-ORC gave up on.
func GiveUp(object client.Object, conditions *[]metav1.Condition, reason, message string) {
	report(object, conditions, false, false, reason, message)
}

func report(object client.Object, conditions *[]metav1.Condition, available, progressing bool, reason, message string) {
	for kind, holds := range map[string]bool{orcv1alpha1.ConditionAvailable: available, orcv1alpha1.ConditionProgressing: progressing} {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration()})
	}
}

func nonEmpty(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
