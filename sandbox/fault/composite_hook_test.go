package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/internal/catset"
)

// This file plays the hook of all CatSets of a sweep: it answers, notes what it was asked, and fails where a scenario says
// so.

// finalizePath is where the hook is asked what to leave of a parent that goes: nothing.
const finalizePath = "/finalize"

// hooks are those of the runs, by namespace.
type hooks struct {
	*httptest.Server
	client kubernetes.Interface

	mu   sync.Mutex
	runs map[string]*hookRun
}

// hookRun is what one run asks of the hook.
type hookRun struct {
	fail   *hookFault
	failed int
	notes  []check.Note
}

// hookFault is a way to answer that no controller can use.
type hookFault struct {
	name string
	// only narrows the parents that it is for, nil if it is for all.
	only func(parent *unstructured.Unstructured) bool
	// silent says that no condition tells of it: to be asked again later is no failure.
	silent bool
	// answer answers wrongly. good is what the answer should have been.
	answer func(w http.ResponseWriter, req *http.Request, good map[string]any)
}

// question is what a hook is sent: a decorator's has other names for the same.
type question struct {
	Parent      *unstructured.Unstructured                       `json:"parent"`
	Object      *unstructured.Unstructured                       `json:"object"`
	Children    map[string]map[string]*unstructured.Unstructured `json:"children"`
	Attachments map[string]map[string]*unstructured.Unstructured `json:"attachments"`
}

func (h *hooks) start(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	h.client, h.runs = c, map[string]*hookRun{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
}

// run returns what is known of a namespace. The caller holds the lock.
func (h *hooks) run(namespace string) *hookRun {
	if h.runs[namespace] == nil {
		h.runs[namespace] = &hookRun{}
	}
	return h.runs[namespace]
}

// fail makes the hook answer wrongly in one namespace until the function that it returns is called.
func (h *hooks) fail(namespace string, f hookFault) (mend func()) {
	set := func(f *hookFault) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.run(namespace).fail = f
	}
	set(&f)
	return func() { set(nil) }
}

// failed is how many answers were wrong.
func (h *hooks) failed(namespace string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run(namespace).failed
}

func (h *hooks) notesOf(namespace string) []check.Note {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.run(namespace).notes)
}

// ServeHTTP answers one question.
func (h *hooks) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var q question
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	attached := q.Object != nil
	if attached {
		q.Parent, q.Children = q.Object, q.Attachments
	}
	if err != nil || q.Parent == nil {
		http.Error(w, fmt.Sprintf("no question: %v", err), http.StatusBadRequest)
		return
	}
	fault, err := h.note(req.Context(), &q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	good := answerTo(&q)
	if attached {
		good = map[string]any{"annotations": catset.Annotations(q.Parent), "attachments": good["children"]}
	}
	if req.URL.Path == finalizePath {
		good = map[string]any{"attachments": []any{}, "finalized": len(q.Children["Pod.v1"]) == 0}
	}
	if fault != nil {
		fault.answer(w, req, good)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answerWith(w, good)
}

// answerWith sends an answer. Who does not read it has failed, not we.
func answerWith(w io.Writer, answer map[string]any) {
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // it is made of what came as JSON
}

// note writes a question down, after everything that was written before it, and says how it is to be answered, nil if well.
func (h *hooks) note(ctx context.Context, q *question) (*hookFault, error) {
	// The controller waits for the answer, so that this is before whatever it does next.
	list, err := h.client.CoreV1().ConfigMaps(q.Parent.GetNamespace()).List(context.WithoutCancel(ctx), metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("ask what time it is: %w", err)
	}
	rv, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.run(q.Parent.GetNamespace())
	fault := run.fail
	if fault != nil && fault.only != nil && !fault.only(q.Parent) {
		fault = nil
	}
	if fault != nil {
		run.failed++
	}
	run.notes = append(run.notes, check.Note{
		RV: rv, Parent: q.Parent.GetUID(), Sent: q.Parent, Question: q.versions(), Told: q.told(), Failed: fault != nil,
	})
	return fault, nil
}

// versions are those of all that the hook was told of.
func (q *question) versions() string {
	out := []string{q.Parent.GetResourceVersion()}
	for _, children := range q.Children {
		for _, child := range children {
			out = append(out, child.GetResourceVersion())
		}
	}
	slices.Sort(out[1:])
	return strings.Join(out, " ")
}

// told are the children that the hook was told of.
func (q *question) told() []client.Object {
	out := []client.Object{}
	for _, children := range q.Children {
		for _, child := range children {
			out = append(out, child)
		}
	}
	return out
}

func answerTo(q *question) map[string]any {
	var pods []client.Object
	for _, pod := range q.Children["Pod.v1"] {
		pods = append(pods, pod)
	}
	children := []any{}
	for _, child := range catset.Answer(q.Parent) {
		children = append(children, child.Object)
	}
	return map[string]any{"status": catset.Status(pods), "children": children}
}
