// Package controlplane reconciles ControlPlane.
package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// Setup registers the controller.
func Setup(context.Context, order.Environment, *dependencies.Tracker, controller.TypedOptions[mcreconcile.Request]) error {
	return nil
}
