package catset

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/proof/check"
)

// This file holds the same for parents that are in no namespace. Their spec.home says where their pods are to be, and
// their ConfigMap is in the namespace home-config; the controllers say where their revisions are.

// The kind and the resource of parents that are in no namespace.
var (
	ClusterKind     = Kind.GroupVersion().WithKind("ClusterCatSet")
	ClusterResource = Resource.GroupVersion().WithResource("clustercatsets")
)

// NewCluster returns a parent in no namespace whose pods are in home.
func NewCluster(home, name string, limits Limits, replicas int64, image string) *unstructured.Unstructured {
	out := New("", name, limits, replicas, image)
	out.SetKind(ClusterKind.Kind)
	out.SetNamespace("")
	out.Object["spec"].(map[string]any)["home"] = home
	return out
}

// ClusterControllers are [Controllers] of such parents, whose revisions are in that namespace.
func ClusterControllers(home, url, timeout string) []*v1alpha1.CompositeController {
	return controllers("check-cluster-", ClusterResource.Resource, home, url, timeout)
}

// ClusterKinds tell the rules what such a parent is.
func ClusterKinds() []check.Kind { return kinds(ClusterKind, ClusterResource) }
