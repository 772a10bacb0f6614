package apply_test

import (
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// Each case is a report about Metacontroller: a child that is recreated or written on every pass, for ever. observed is
// what the real API server made of the desired fields.
func TestServedEndsEndlessLoops(t *testing.T) {
	for _, c := range []struct{ name, desired, observed string }{
		{
			"tolerations (#863)",
			`{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"}]}}`,
			`{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"},` +
				`{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}]}}`,
		},
		{
			"downwardAPI (#443)",
			`{"spec":{"volumes":[{"name":"v","downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}],` +
				`"projected":[{"fieldRef":{"fieldPath":"metadata.name"}}]}}`,
			`{"spec":{"volumes":[{"name":"v","downwardAPI":{"defaultMode":420,"items":[{"path":"n","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}]}},` +
				`{"name":"kube-api-access-x7"}],"projected":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}]}}`,
		},
		{
			"an empty value (#281)",
			`{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":""}]}]}}`,
			`{"spec":{"containers":[{"name":"c","env":[{"name":"A"}],"imagePullPolicy":"Always"}]}}`,
		},
		{"an empty object", `{"spec":{"nodeSelector":{}}}`, `{"spec":{"dnsPolicy":"ClusterFirst"}}`},
		{"empty labels", `{"metadata":{"labels":{}},"spec":{}}`, `{"metadata":{},"spec":{}}`},
		{"a quantity", `{"spec":{"limits":{"cpu":"1000m"}}}`, `{"spec":{"limits":{"cpu":"1"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			desired := named(parse(t, c.desired), "x-0")
			created, err := apply.New(desired)
			if err != nil {
				t.Fatal(err)
			}
			observed := named(parse(t, c.observed), "x-0")
			set(observed, annotationOf(created), "metadata", "annotations", apply.LastApplied)
			set(observed, "u-1", "metadata", "uid")

			blind, err := apply.Child(observed, desired, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !blind.Content || !blind.Reapplied {
				t.Fatalf("this case needs no answer of the API server: %+v", blind)
			}
			// Admission gives its volumes another name in every pod.
			served := apply.Served(named(parse(t, strings.ReplaceAll(c.observed, "access-x7", "access-q2")), "a-free-name"))
			r, err := apply.Child(observed, desired, served)
			if err != nil {
				t.Fatal(err)
			}
			if r.Changed {
				t.Errorf("it is what the API server makes of it, and yet: %s", text(t, r.Object))
			}
			atRest(t, r.Object, desired, served)

			// Somebody's edit is still found.
			set(observed, "drift", "metadata", "labels", "l")
			set(desired, "ours", "metadata", "labels", "l")
			set(served, "ours", "metadata", "labels", "l")
			if r, err := apply.Child(observed, desired, served); err != nil || !r.Content {
				t.Errorf("drift is not found any more, %v", err)
			}
		})
	}
}

func TestServedStillFindsDriftInAListWithoutKeys(t *testing.T) {
	desired := named(parse(t, `{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"}]}}`), "x-0")
	served := named(parse(t, `{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"},{"key":"not-ready"}]}}`), "y")
	observed := named(parse(t, `{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"},{"key":"not-ready"},{"key":"edited"}]}}`), "x-0")
	r, err := apply.Child(observed, desired, served)
	if err != nil || !r.Content {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := len(r.Object["spec"].(map[string]any)["tolerations"].([]any)); got != 2 {
		t.Errorf("%d tolerations, want those that the API server makes of it", got)
	}
	if got := r.Object["metadata"].(map[string]any)["name"]; got != "x-0" {
		t.Errorf("the name is %v", got)
	}
}

func named(o map[string]any, name string) map[string]any {
	set(o, name, "metadata", "name")
	return o
}
