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
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file plays the hook of all CatSets of a sweep: it answers, notes what it was asked, and fails where a scenario
// says so.

// finalizePath is where the finalize hook is.
const finalizePath = "/finalize"

// customizePath is where the customize hook is.
const customizePath = "/customize"

// hooks are those of the runs, by namespace.
type hooks struct {
	*httptest.Server
	client kubernetes.Interface

	mu   sync.Mutex
	runs map[string]*hookRun
	// users is how many sweeps use them.
	users int
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
	// reason is the reason of the condition Updated; empty if any reason will do.
	reason string
	// only narrows the parents that it is for, nil if it is for all.
	only func(parent *unstructured.Unstructured) bool
	// silent says that no condition tells of it: to be asked again later is no failure.
	silent bool
	// answer answers wrongly. good is what the answer should have been.
	answer func(w http.ResponseWriter, req *http.Request, good map[string]any)
}

// start makes the hooks answer until the test ends, and any other that has started them.
func (h *hooks) start(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users++; h.users == 1 {
		h.client, h.runs = c, map[string]*hookRun{}
		h.Server = httptest.NewServer(h)
	}
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.users--; h.users == 0 {
			h.CloseClientConnections()
			h.Close()
		}
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
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // whoever asked is gone
	}
	if req.URL.Path == customizePath {
		customized(w, body)
		return
	}
	q, err := catset.Read(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fault, err := h.note(req.Context(), q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	q.Finalizing = req.URL.Path == finalizePath
	good := q.Answer()
	if fault != nil {
		fault.answer(w, req, good)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answerWith(w, good)
}

func customized(w http.ResponseWriter, body []byte) {
	rules, err := catset.Customize(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answerWith(w, rules)
}

// answerWith sends an answer. Who does not read it has failed, not we.
func answerWith(w io.Writer, answer map[string]any) {
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // it is made of what came as JSON
}

// note writes a question down, after everything that was written before it, and says how it is to be answered, nil if
// well.
func (h *hooks) note(ctx context.Context, q *catset.Question) (*hookFault, error) {
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
	if fault == nil && !q.Permitted() {
		fault = &hookFaults()[0]
	}
	if fault != nil {
		run.failed++
	}
	run.notes = append(run.notes, q.Note(rv, fault != nil))
	return fault, nil
}
