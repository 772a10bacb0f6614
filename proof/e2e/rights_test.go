package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file finds rights that the shipped roles grant and no test needs: after all tests of the package have run, each
// verb on each resource must have been used by the manager's service account. One that was not is dropped from the
// role, or tested.

// managerUser is the service account of the manifests.
const managerUser = "system:serviceaccount:" + deploy.Namespace + ":" + deploy.ServiceAccount

// used are the rights that the manager's service account has used.
var used sync.Map

// use notes a request of the manager's.
func use(r sandbox.Request) {
	if r.User == managerUser && r.Resource != "" && r.Code < 400 {
		used.Store(right(r.Verb, r.Group, strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")), true)
	}
}

func right(verb, group, resource string) string {
	return strings.TrimSpace(verb + " " + resource + " " + group)
}

// needed says what a right is for that no request of these tests shows; empty if nothing is.
func needed(right string) string {
	verb, resource, _ := strings.Cut(right, " ")
	switch {
	case verb == "update" && strings.Contains(resource, "/finalizers"), right == "delete persistentvolumeclaims":
		return "OwnerReferencesPermissionEnforcement asks for it when an owner reference is written"
	case verb == "list":
		return "informers list where the API server streams no lists"
	case verb == "get":
		return "a read past a cache that may be stale, which depends on when things happen"
	case right == "patch events":
		return "an event that repeats"
	}
	return map[string]string{
		"patch cronjobs batch":         "rule E3: what the API server makes of an older snapshot",
		"patch jobs batch":             "the Jobs of a duplicate revision",
		"patch persistentvolumeclaims": "claims that go with their set (package fault)",
	}[right]
}

// unused are the rights of the roles that were not used.
func unused() (out []string, err error) {
	for _, name := range manager.Names() {
		text, err := deploy.Roles(name, true)
		if err != nil {
			return nil, err
		}
		rules, err := rulesIn(text)
		if err != nil {
			return nil, fmt.Errorf("roles of %s: %w", name, err)
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						r := right(verb, group, resource)
						if _, ok := used.Load(r); !ok && needed(r) == "" {
							out = append(out, name+": "+r)
						}
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// rulesIn returns the rules of all roles in a YAML stream.
func rulesIn(text string) (out []rbacv1.PolicyRule, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text))
	for {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, role.Rules...)
	}
}

// rightsAreUsed is the exit code of the package when all of its tests have passed: 1 if a right was not used. Of a part
// of the tests nothing can be said.
func rightsAreUsed() int {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return 0
		}
	}
	left, err := unused()
	if err == nil && len(left) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "rights in deploy/roles that no test of e2e has needed (%v):\n  %s\n", err, strings.Join(left, "\n  "))
	return 1
}
