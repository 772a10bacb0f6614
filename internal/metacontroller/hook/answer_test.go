package hook_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

var (
	composite   = hook.Form{Hook: hook.Sync, Type: hook.Composite, Namespace: "ns", Kinds: []hook.ChildKind{podKind, setKind, namespaceKind}}
	clusterwide = hook.Form{Hook: hook.Sync, Type: hook.Composite, Kinds: []hook.ChildKind{podKind, namespaceKind}}
	decorator   = hook.Form{Hook: hook.Sync, Type: hook.Decorator, Namespace: "ns", Kinds: []hook.ChildKind{podKind}}
)

func strict(f hook.Form) hook.Form     { f.Strict = true; return f }
func finalizing(f hook.Form) hook.Form { f.Hook = hook.Finalize; return f }
func childless(f hook.Form) hook.Form  { f.Kinds = nil; return f }

func TestAnswersThatAreNone(t *testing.T) {
	const a = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`
	children := func(list string) string { return `{"children":[` + list + `]}` }
	for _, c := range []struct {
		name, body, want string
		form             hook.Form
		reason           hook.Reason
	}{
		{"nothing", ``, `the answer cannot be read: unexpected end of JSON input`, composite, hook.Malformed},
		{"a page", `<html>`, `the answer cannot be read: invalid character '<' looking for beginning of value`, composite, hook.Malformed},
		{"half of it", `{"children":[`, `the answer cannot be read: unexpected end of JSON input`, composite, hook.Malformed},
		{"two of them", `{"children":[]}{}`, `the answer cannot be read: invalid character '{' after top-level value`, composite, hook.Malformed},
		{"a list", `[]`, `the answer cannot be read: json: cannot unmarshal array into Go value of type map[string]interface {}`, composite, hook.Malformed},
		{"null", `null`, `the answer is null`, composite, hook.Malformed},

		{"no children", `{}`, `the answer has no field "children": an empty list says that there should be none`, composite, hook.Incomplete},
		{"no children, but a status", `{"status":{"a":1}}`, `the answer has no field "children": an empty list says that there should be none`, composite, hook.Incomplete},
		{"Children is another field", `{"Children":[]}`, `the answer has no field "children": an empty list says that there should be none`, composite, hook.Incomplete},
		{"the other protocol", `{"attachments":[]}`, `the answer has no field "children": an empty list says that there should be none`, composite, hook.Incomplete},
		{"no attachments", `{"labels":{"a":"b"}}`, `the answer has no field "attachments": an empty list says that there should be none`, decorator, hook.Incomplete},
		{"finalize, not done", `{"finalized":false}`, `the answer has no field "children": an empty list says that there should be none`, finalizing(composite), hook.Incomplete},
		{"sync cannot be done", `{"finalized":true}`, `the answer has no field "children": an empty list says that there should be none`, composite, hook.Incomplete},

		{"children are an object", `{"children":{}}`, `children is an object, not a list`, composite, hook.Malformed},
		{"status is a string", `{"children":[],"status":"ok"}`, `status is a string, not an object`, composite, hook.Malformed},
		{"status is a list", `{"children":[],"status":[]}`, `status is a list, not an object`, composite, hook.Malformed},
		{"resync is a string", `{"children":[],"resyncAfterSeconds":"5"}`, `resyncAfterSeconds is a string, not a number`, composite, hook.Malformed},
		{"resync is no number there is", `{"children":[],"resyncAfterSeconds":1e999}`, `the answer cannot be read: json: cannot unmarshal number 1e999 into Go value of type float64`, composite, hook.Malformed},
		{"finalized is a number", `{"children":[],"finalized":1}`, `finalized is a number, not true or false`, composite, hook.Malformed},
		{"labels are a list", `{"attachments":[],"labels":[]}`, `labels is a list, not an object`, decorator, hook.Malformed},
		{"a label is a number", `{"attachments":[],"labels":{"a":1}}`, `labels: "a" is a number, not a string or null`, decorator, hook.Malformed},
		{"an annotation is true", `{"attachments":[],"annotations":{"a":true}}`, `annotations: "a" is true or false, not a string or null`, decorator, hook.Malformed},

		{"strict: an unknown field", `{"children":[],"childern":[]}`, `the answer has an unknown field "childern"`, strict(composite), hook.Malformed},
		{"strict: the other protocol's field", `{"children":[],"labels":{}}`, `the answer has an unknown field "labels"`, strict(composite), hook.Malformed},
		{"strict: a field twice", `{"children":[],"children":[]}`, `the answer has a duplicate field "children"`, strict(composite), hook.Malformed},
		{"strict: a field of a child twice", children(strings.Replace(a, `{"name"`, `{"name":"b","name"`, 1)), `the answer has a duplicate field "children[0].metadata.name"`, strict(composite), hook.Malformed},

		{"a child is null", children(`null`), `children[0]: is null, not an object`, composite, hook.Contradictory},
		{"a child is a string", children(a + `,"b"`), `children[1]: is a string, not an object`, composite, hook.Contradictory},
		{"a child without a kind", children(`{"apiVersion":"v1","metadata":{"name":"a"}}`), `children[0] "a": has no apiVersion or no kind`, composite, hook.Contradictory},
		{"a child without an apiVersion", children(`{"kind":"Pod"}`), `children[0] "Pod": has no apiVersion or no kind`, composite, hook.Contradictory},
		{"a child whose kind is a number", children(`{"apiVersion":"v1","kind":1}`), `children[0]: has no apiVersion or no kind`, composite, hook.Contradictory},
		{"a child whose apiVersion is none", children(`{"apiVersion":"a/b/c","kind":"Pod"}`), `children[0] "Pod": has apiVersion "a/b/c", which is none`, composite, hook.Contradictory},
		{"a child without metadata", children(`{"apiVersion":"v1","kind":"Pod"}`), `children[0] "Pod": has no metadata`, composite, hook.Contradictory},
		{"a child without a name", children(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`), `children[0] "Pod": has no metadata.name`, composite, hook.Contradictory},
		{"a child with an empty name", children(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":""}}`), `children[0] "Pod": has no metadata.name`, composite, hook.Contradictory},
		{"a child whose name is a number", children(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}`), `children[0] "Pod": has a metadata.name that is a number, not a string`, composite, hook.Contradictory},
		{"a child whose name is a path", children(strings.Replace(a, `"a"`, `"../a"`, 1)), `children[0] "Pod ../a": has metadata.name "../a", which may not contain '/'`, composite, hook.Contradictory},
		{"a child of an undeclared kind", children(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`), `children[0] "Secret a": the controller declares no "Secret" with apiVersion "v1" among its child resources`, composite, hook.Contradictory},
		{"a child of another version", children(`{"apiVersion":"apps/v1beta1","kind":"StatefulSet","metadata":{"name":"a"}}`), `children[0] "StatefulSet a": has apiVersion "apps/v1beta1", and the controller declares this kind in apps/v1`, composite, hook.Contradictory},
		{"a child twice", children(a + `,` + a), `children[1] "Pod a": is there already, at children[0]`, composite, hook.Contradictory},
		{"a child twice, once with its namespace", children(a + `,` + strings.Replace(a, `}}`, `,"namespace":"ns"}}`, 1)), `children[1] "Pod a": is there already, at children[0]`, composite, hook.Contradictory},
		{"a child in another namespace", children(strings.Replace(a, `}}`, `,"namespace":"kube-system"}}`, 1)), `children[0] "Pod a": has namespace "kube-system", and its parent is in ns`, composite, hook.Contradictory},
		{"a cluster-scoped child of a namespaced parent", children(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`), `children[0] "Namespace a": is cluster-scoped, and its parent is in namespace ns`, composite, hook.Contradictory},
		{"a cluster-scoped child with a namespace", children(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","namespace":"b"}}`), `children[0] "Namespace a": is cluster-scoped, and has namespace "b"`, clusterwide, hook.Contradictory},
		{"nobody says a namespace", children(a), `children[0] "Pod a": has no namespace, and its parent has none that it could take`, clusterwide, hook.Contradictory},
		{"a namespace that is a path", children(strings.Replace(a, `}}`, `,"namespace":"a/b"}}`, 1)), `children[0] "Pod a": has namespace "a/b", which may not contain '/'`, clusterwide, hook.Contradictory},
		{"a namespace that is a number", children(strings.Replace(a, `}}`, `,"namespace":1}}`, 1)), `children[0] "Pod a": has a metadata.namespace that is a number, not a string`, composite, hook.Contradictory},
		{"a label that is a number", children(strings.Replace(a, `}}`, `,"labels":{"i":1}}}`, 1)), `children[0] "Pod a": has metadata.labels with "i", which is a number, not a string`, composite, hook.Contradictory},
		{"annotations that are a list", children(strings.Replace(a, `}}`, `,"annotations":[]}}`, 1)), `children[0] "Pod a": has metadata.annotations that are a list, not an object`, composite, hook.Contradictory},
		{"many", children(`1,2,3,4,5`), `children[0]: is a number, not an object; children[1]: is a number, not an object; children[2]: is a number, not an object; children after that were not looked at`, composite, hook.Contradictory},
		{"an attachment", `{"attachments":[1]}`, `attachments[0]: is a number, not an object`, decorator, hook.Contradictory},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := c.form.Decode([]byte(c.body))
			f := failure(t, err)
			if answer != nil || f.Reason != c.reason || f.Err.Error() != c.want {
				t.Errorf("got %s, %v\nwant %s, %s", f.Reason, f.Err, c.reason, c.want)
			}
			if want := string(c.form.Hook) + " hook: " + c.want; err.Error() != want {
				t.Errorf("the error is %v", err)
			}
			var bad hook.ChildrenError
			if errors.As(err, &bad) != (c.reason == hook.Contradictory) {
				t.Error("which children are wrong is not said")
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name, body string
		form       hook.Form
		want       hook.Answer
		children   string // kind namespace/name, in order
	}{
		{"no status", `{"children":[]}`, strict(composite), hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given}, ``},
		{"a null status", `{"children":[],"status":null}`, composite, hook.Answer{StatusPresence: hook.Null, ChildrenPresence: hook.Given}, ``},
		{"an empty status", `{"children":[],"status":{}}`, composite, hook.Answer{Status: map[string]any{}, StatusPresence: hook.Given, ChildrenPresence: hook.Given}, ``},
		{"integers stay integers", `{"children":[],"status":{"a":9007199254740993}}`, composite, hook.Answer{Status: map[string]any{"a": int64(9007199254740993)}, StatusPresence: hook.Given, ChildrenPresence: hook.Given}, ``},
		{"a Go program's nil list", `{"children":null}`, strict(composite), hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Null}, ``},
		{"nothing can be missing where nothing is declared", `{}`, childless(composite), hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Absent}, ``},
		{"finalize, done", `{"finalized":true}`, finalizing(composite), hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Absent, Finalized: true}, ``},
		{"resync", `{"children":[],"resyncAfterSeconds":0.5}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given, ResyncAfter: 500 * time.Millisecond}, ``},
		{"resync in whole seconds", `{"children":[],"resyncAfterSeconds":3}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given, ResyncAfter: 3 * time.Second}, ``},
		{"resync very soon", `{"children":[],"resyncAfterSeconds":1e-300}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given, ResyncAfter: 1}, ``},
		{"resync in a year beyond time", `{"children":[],"resyncAfterSeconds":1e300}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given, ResyncAfter: math.MaxInt64}, ``},
		{"resync before now", `{"children":[],"resyncAfterSeconds":-1}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given}, ``},
		{"nulls", `{"children":[],"resyncAfterSeconds":null,"finalized":null}`, strict(composite), hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given}, ``},
		{"loose: unknown and duplicate fields", `{"children":[1],"children":[],"labels":7,"new":1}`, composite, hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given}, ``},
		{
			"children keep their order and get their namespace",
			`{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}},{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"b","namespace":"ns"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":null,"labels":null}}]}`,
			strict(composite),
			hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given},
			`Pod ns/b StatefulSet ns/b Pod ns/a `,
		},
		{
			"children of a cluster-scoped parent",
			`{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"x"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"y"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}]}`,
			strict(clusterwide),
			hook.Answer{StatusPresence: hook.Absent, ChildrenPresence: hook.Given},
			`Pod x/a Pod y/a Namespace /a `,
		},
		{
			"a decorator", `{"attachments":[],"labels":{"a":"1","b":null,"c":""},"annotations":null}`, strict(decorator),
			hook.Answer{Labels: map[string]*string{"a": text("1"), "b": nil, "c": text("")}, StatusPresence: hook.Absent, ChildrenPresence: hook.Given},
			``,
		},
		{"a decorator that only decorates", `{"annotations":{"a":"1"}}`, strict(childless(decorator)), hook.Answer{Annotations: map[string]*string{"a": text("1")}, StatusPresence: hook.Absent, ChildrenPresence: hook.Absent}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := c.form.Decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, child := range answer.Children {
				got += child.GetKind() + " " + child.GetNamespace() + "/" + child.GetName() + " "
			}
			if got != c.children {
				t.Errorf("the children are %s", got)
			}
			if (answer.Children == nil) != (c.want.ChildrenPresence != hook.Given) {
				t.Errorf("children are %#v", answer.Children)
			}
			answer.Children = nil
			if diff := cmp.Diff(&c.want, answer, cmpopts.IgnoreUnexported(hook.Answer{})); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	const pods = `"apiVersion":"v1","resource":"pods"`
	rules := func(list string) string { return `{"relatedResources":[` + list + `]}` }
	for _, c := range []struct {
		name, body, want string // want is the error, empty for a good one
		form             hook.Form
		version          v1alpha1.HookVersion
		count            int
	}{
		{name: "none", body: `{}`, form: strict(composite)},
		{name: "null", body: `{"relatedResources":null}`, form: strict(composite)},
		{name: "all", body: rules(`{` + pods + `}`), count: 1},
		{name: "two", body: rules(`{` + pods + `,"labelSelector":{"matchLabels":{"a":"b"}}},{` + pods + `,"namespace":"ns","names":["a"]}`), form: composite, count: 2},
		{name: "no JSON", body: `{`, want: `the answer cannot be read: unexpected end of JSON input`},
		{name: "null answer", body: `null`, want: `the answer is null`},
		{name: "a null rule", body: rules(`null`), want: `relatedResources[0] is null`},
		{name: "loose", body: rules(`{` + pods + `,"x":1}`), count: 1},
		{name: "strict", body: rules(`{` + pods + `,"x":1}`), form: strict(composite), want: `the answer has an unknown field "relatedResources[0].x"`},
		{name: "no resource", body: rules(`{"apiVersion":"v1"}`), want: `relatedResources[0] "": needs apiVersion and resource`},
		{name: "no apiVersion", body: rules(`{"resource":"pods"}`), want: `relatedResources[0] "pods": needs apiVersion and resource`},
		{name: "names and labels", body: rules(`{` + pods + `,"names":["a"],"labelSelector":{}}`), want: `relatedResources[0] "pods": names and selectors are mutually exclusive`},
		{name: "names and namespaces", body: rules(`{` + pods + `,"names":["a"],"namespaceSelector":{}}`), want: `relatedResources[0] "pods": names and selectors are mutually exclusive`},
		{name: "a namespace and namespaces", body: rules(`{` + pods + `,"namespace":"a","namespaceSelector":{}}`), want: `relatedResources[0] "pods": namespace and namespaceSelector are mutually exclusive`},
		{name: "v1, elsewhere", body: rules(`{` + pods + `,"namespace":"kube-system"}`), form: composite, version: v1alpha1.HookVersionV1, want: `relatedResources[0] "pods": asks for namespace "kube-system", and the parent is in ns; version v2 of the hook may do that`},
		{name: "v1, cluster-scoped", body: rules(`{` + pods + `,"namespace":"kube-system"}`), form: clusterwide, version: v1alpha1.HookVersionV1, count: 1},
		{name: "v2, elsewhere", body: rules(`{` + pods + `,"namespace":"kube-system"}`), form: composite, version: v1alpha1.HookVersionV2, count: 1},
		{name: "a bad selector", body: rules(`{` + pods + `,"labelSelector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}`), want: `relatedResources[0] "pods": has a bad labelSelector: "Is" is not a valid label selector operator`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.form.DecodeRules(c.version, []byte(c.body))
			if c.want != "" {
				if f := failure(t, err); f.Err.Error() != c.want {
					t.Errorf("got %v", f.Err)
				}
				return
			}
			if err != nil || len(got) != c.count {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
