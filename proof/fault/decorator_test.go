package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file is the sweep's subject decorator: CatSets that nobody runs, to which the same pods are attached.

func decorators() subject {
	h := &hooks{}
	return subject{
		controller: "decorator",
		kinds:      catset.AttachedKinds(),
		scopes:     catset.Resources(),
		namespaced: []string{"catsets", "pods", "configmaps"},
		scenarios:  []fault.Scenario{attachedAndChanged(), attachedAndGone()},
		refusals: []fault.Refusal{
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, After: 1, Times: 4},
			{Resource: catSetResource, Verb: "patch", Status: http.StatusInternalServerError, Times: 3},
		},
		prepare: func(t *testing.T, sweep *fault.Sweep) {
			t.Helper()
			h.start(t, kubernetes.NewForConfigOrDie(sweep.User))
			sweep.Notes = h.notesOf
			must(t, applyDecorator(t.Context(), sweep.User, h.URL))
			canOwn(t, sweep.Config)
		},
	}
}

func applyDecorator(ctx context.Context, admin *rest.Config, url string) error {
	if err := install.CRDs(ctx, admin); err != nil {
		return err
	}
	dc := catset.Decorator(url, url+finalizePath, hookTimeout)
	roles, err := deploy.DecoratorRoles(dc, deploy.Grant{})
	if err != nil {
		return err
	}
	return install.Apply(ctx, admin, catset.CRD, deploy.YAML(append(roles, dc)))
}

// attachedAndChanged changes what is attached, loses some of it, and wants less of it.
func attachedAndChanged() fault.Scenario {
	return fault.Scenario{
		Name:  "decorator attaches and changes",
		Share: 4,
		Drive: steps(
			attach,
			editCats(catImage("app:2")),
			until("the change", attachedAre("app:2", catReplicas)),
			losePod(catName+"-0"),
			editCats([]byte(`{"spec":{"replicas":2}}`)),
		),
		Ended: attachedAre("app:2", 2),
	}
}

// attachedAndGone deletes the object, which waits until the hook says that all is cleared away.
func attachedAndGone() fault.Scenario {
	return fault.Scenario{
		Name:  "decorator clears away",
		Share: 4,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := attach(ctx, e); err != nil {
				return err
			}
			return catSets(e).Delete(ctx, catName, metav1.DeleteOptions{})
		},
		Ended: func(ctx context.Context, e *fault.Env) error {
			if _, err := catSets(e).Get(ctx, catName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return errors.Join(err, errors.New("the object is still there"))
			}
			return podsHave()(ctx, e)
		},
	}
}

func attach(ctx context.Context, e *fault.Env) error {
	set := catset.New(e.Namespace, catName, catset.Attached, catReplicas, "app:1")
	if _, err := catSets(e).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until("the attachments", attachedAre("app:1", catReplicas))(ctx, e)
}

// attachedAre returns nil if there are so many pods of that image, all ready, and the ConfigMap says the same.
func attachedAre(image string, n int) step {
	return func(ctx context.Context, e *fault.Env) error {
		config, err := e.Client.CoreV1().ConfigMaps(e.Namespace).Get(ctx, catName+"-config", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := config.Data["image"]; got != image {
			return fmt.Errorf("the ConfigMap says %s, want %s", got, image)
		}
		return podsHave(numbered(slices.Repeat([]string{image}, n)...)...)(ctx, e)
	}
}
