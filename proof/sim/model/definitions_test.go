package model_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox/install"
)

// definitions define the custom resources of the test.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.model.cairn.dev}
spec:
  group: model.cairn.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.model.cairn.dev}
spec:
  group: model.cairn.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// installDefinitions defines the custom resources and waits until they are served.
func installDefinitions(t *testing.T, cfg *rest.Config) {
	t.Helper()
	if err := install.Apply(t.Context(), cfg, definitions); err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), pollInterval, 10*time.Second, true, func(context.Context) (bool, error) {
		served, err := d.ServerResourcesForGroupVersion("model.cairn.dev/v1")
		return err == nil && len(served.APIResources) == 3, nil // two kinds and a status
	})
	if err != nil {
		t.Fatalf("wait for the custom resources: %v", err)
	}
}
