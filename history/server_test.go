package history_test

// The fake API server of this package's tests, with what the log relies on beside: dry runs that know defaults.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

var revisions = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}

type server struct {
	*fakeserver.Server

	t testing.TB
}

func newServer(t testing.TB, objects ...client.Object) *server {
	t.Helper()
	return &server{fakeserver.New(t, objects...), t}
}

// Patch carries out dry runs here: to the fake client they are patches like others. They have a verb of their own.
func (s *server) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	if len(options.DryRun) == 0 {
		return s.Server.Patch(ctx, o, patch, opts...)
	}
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	request := fakeserver.Call{Verb: "dry-run", Kind: fakeserver.TypeOf(o), Name: o.GetName(), Body: string(body)}
	return s.Serve(request, func() error { return s.dryRun(ctx, o, body) })
}

// dryRun is a patch of a DaemonSet's template that stores nothing. This server defaults dnsPolicy, like a real one.
func (s *server) dryRun(ctx context.Context, o client.Object, body []byte) error {
	var stored appsv1.DaemonSet
	if err := s.Raw.Get(ctx, client.ObjectKeyFromObject(o), &stored); err != nil {
		return err
	}
	var ops []struct {
		Path  string
		Value json.RawMessage
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		return err
	}
	for _, op := range ops {
		switch op.Path {
		case "/metadata/uid", "/metadata/resourceVersion":
			if want := string(op.Value); want != fmt.Sprintf("%q", stored.UID) && want != fmt.Sprintf("%q", stored.ResourceVersion) {
				return apierrors.NewConflict(schema.GroupResource{Resource: "daemonsets"}, o.GetName(), errors.New(op.Path))
			}
		case "/spec/template":
			var template corev1.PodTemplateSpec
			if err := json.Unmarshal(op.Value, &template); err != nil {
				return err
			}
			if template.Spec.DNSPolicy == "" {
				template.Spec.DNSPolicy = corev1.DNSClusterFirst
			}
			if !apiequality.Semantic.DeepEqual(template, stored.Spec.Template) {
				stored.Generation++
			}
		default:
			return apierrors.NewBadRequest("no such path here: " + op.Path)
		}
	}
	stored.DeepCopyInto(o.(*appsv1.DaemonSet))
	return nil
}

// fail returns a hook that gives err for requests with that verb.
func fail(verb string, err error) func(fakeserver.Call) error {
	return func(c fakeserver.Call) error {
		if c.Verb == verb {
			return err
		}
		return nil
	}
}
