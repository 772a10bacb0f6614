package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file plays the hook of hosted controllers. A question waits for the scheduler as a request does, which also
// means that some are answered too late; and the scheduler has some answered in a way that nobody can use.

// hookResource stands for the hook among the resources of requests.
var hookResource = schema.GroupVersionResource{Resource: "hook"}

const verbAsk = "ask"

// hookWay is a process's way to the hook.
type hookWay struct{ from *process }

// RoundTrip asks the hook. It gives up when the request does.
func (h hookWay) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	q, err := catset.Read(body)
	if err != nil {
		return nil, err
	}
	q.Finalizing, q.Only = r.URL.Path == finalizePath, onlyAt[r.URL.Path]
	c := &call{
		from: h.from, answer: make(chan answer, 1), pass: passOf(r.Context()), question: q, body: string(body),
		request: model.Request{Verb: verbAsk, Resource: hookResource, Namespace: q.Parent.GetNamespace(), Name: q.Parent.GetName()},
	}
	if !h.from.enqueue(c) {
		return nil, errKilled
	}
	select {
	case a := <-c.answer:
		return a.said, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// badAnswer is a way to answer that no controller can use.
type badAnswer struct {
	name string
	make func(good map[string]any) (*http.Response, error)
}

// comeLater is the only answer that says when to ask again.
const comeLater = "asked to come later"

var badAnswers = []badAnswer{
	{"no connection", func(map[string]any) (*http.Response, error) { return nil, syscall.ECONNREFUSED }},
	{"500", func(map[string]any) (*http.Response, error) {
		return responseWith(http.StatusInternalServerError, []byte("no")), nil
	}},
	{comeLater, func(map[string]any) (*http.Response, error) {
		r := responseWith(http.StatusTooManyRequests, nil)
		r.Header.Set("Retry-After", "3")
		return r, nil
	}},
	{"asked to come later, without when", func(map[string]any) (*http.Response, error) {
		return responseWith(http.StatusTooManyRequests, nil), nil
	}},
	{"breaks off", func(good map[string]any) (*http.Response, error) {
		body := encode(good)
		r := responseWith(http.StatusOK, nil)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), failing{}))
		return r, nil
	}},
	{"no JSON", func(map[string]any) (*http.Response, error) {
		return responseWith(http.StatusOK, []byte("<html>")), nil
	}},
	{"no children", func(map[string]any) (*http.Response, error) { return responseWith(http.StatusOK, []byte("{}")), nil }},
	{"a child of another kind", func(map[string]any) (*http.Response, error) {
		stranger := []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "stranger"}}}
		return responseWith(http.StatusOK, encode(map[string]any{"children": stranger, "attachments": stranger})), nil
	}},
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func encode(o any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("sim: %v", err)) // it came as JSON
	}
	return raw
}

func responseWith(status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// answerHook answers a question, well or in the way that is given, and takes down for the rules what was asked.
func (w *world) answerHook(c *call, bad *badAnswer) {
	good := c.question.Answer()
	w.called(c, recording.Question)
	if bad == nil {
		bad = w.troubled().hook
	}
	if bad == nil {
		w.noteHook(c, false)
		w.tracef("%s: answered", c)
		c.answer <- answer{said: responseWith(http.StatusOK, encode(good))} //nolint:bodyclose // by whoever asked
		return
	}
	w.stats.count("fault hook: " + bad.name)
	w.tracef("%s: %s", c, bad.name)
	w.noteHook(c, true)
	said, err := bad.make(good) //nolint:bodyclose // by whoever asked
	c.answer <- answer{said: said, err: err}
}

func (w *world) noteHook(c *call, failed bool) {
	n := c.question.Note(w.server.ResourceVersion(), failed)
	n.Pass = c.pass
	w.history.Notes = append(w.history.Notes, n)
}

// serveHook answers a question that waits: not always well, if the world is such.
func (w *world) serveHook(c *call, mode fault.Mode) {
	switch {
	case mode == clean:
		w.answerHook(c, nil)
	case mode.Kills():
		w.tracef("%s: %s", c, mode)
		w.noteHook(c, true)
		w.kill(c.from)
		c.answer <- answer{err: errKilled}
	default:
		w.answerHook(c, &badAnswers[w.chance.IntN(len(badAnswers))])
	}
}
