package hook_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// numbered answers with how often it was called.
func numbered(w http.ResponseWriter, calls []call) {
	fmt.Fprintf(w, `{"status":{"call":%d},"children":[]}`, len(calls))
}

func statusCall(t *testing.T, h *hook.Hook, q *hook.Question) int64 {
	t.Helper()
	a, err := h.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := a.Status["call"].(int64)
	return n
}

func TestWhatDidNotChangeIsNotAskedAgain(t *testing.T) {
	const first = 1
	related := func(version string) []hook.Group {
		return []hook.Group{{GroupVersionKind: setKind.GroupVersionKind, Objects: pods(pod("rel", version))[0].Objects}}
	}
	base := func() *hook.Question {
		return &hook.Question{Parent: catset("1"), Children: pods(pod("a", "1"), pod("b", "1")), Related: related("1")}
	}
	for _, c := range []struct {
		name   string
		change func(*hook.Question)
		asked  bool
	}{
		{"nothing", func(*hook.Question) {}, false},
		{"another order", func(q *hook.Question) { q.Children = pods(pod("b", "1"), pod("a", "1")) }, false},
		{"an entry for a kind that has one anyway", func(q *hook.Question) {
			q.Children = append(q.Children, hook.Group{GroupVersionKind: podKind.GroupVersionKind})
		}, false},
		{"asked again", func(q *hook.Question) { q.Again = true }, true},
		{"the parent", func(q *hook.Question) { q.Parent = catset("2") }, true},
		{"a child", func(q *hook.Question) { q.Children = pods(pod("a", "2"), pod("b", "1")) }, true},
		{"a child, recreated", func(q *hook.Question) { a := pod("a", "1"); a.SetUID("x"); q.Children = pods(a, pod("b", "1")) }, true},
		{"a child gone", func(q *hook.Question) { q.Children = pods(pod("a", "1")) }, true},
		{"a child more", func(q *hook.Question) { q.Children = pods(pod("a", "1"), pod("b", "1"), pod("c", "1")) }, true},
		{"a related object", func(q *hook.Question) { q.Related = related("2") }, true},
		{"no related object", func(q *hook.Question) { q.Related[0].Objects = nil }, true},
		{"no related kind", func(q *hook.Question) { q.Related = nil }, true},
		{"a related kind more, without objects", func(q *hook.Question) { q.Related = append(q.Related, pods()...) }, true},
		{"a child that is related as well", func(q *hook.Question) { q.Related = append(q.Related, pods(pod("a", "1"))...) }, true},
		{"a parent that nobody numbered", func(q *hook.Question) { q.Parent.SetResourceVersion("") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, numbered)
			h := newHook(t, options(s.URL))
			if got := statusCall(t, h, base()); got != first {
				t.Fatalf("call %d", got)
			}
			q := base()
			c.change(q)
			if asked := statusCall(t, h, q) != first; asked != c.asked {
				t.Errorf("asked is %t", asked)
			}
			if asked := s.count() == 2; asked != c.asked {
				t.Errorf("%d calls", s.count())
			}
		})
	}
}

func TestRevisionsShareNoAnswer(t *testing.T) {
	s := serve(t, numbered)
	h := newHook(t, options(s.URL))
	at := func(revision string) int64 {
		return statusCall(t, h, &hook.Question{Parent: catset("1"), Revision: revision})
	}
	for range 3 { // in turns, as a rollout does
		if a, b, live := at("r1"), at("r2"), at(""); a != 1 || b != 2 || live != 3 {
			t.Fatalf("answers %d, %d and %d", a, b, live)
		}
	}
}

func TestParentsAndHooksShareNoAnswer(t *testing.T) {
	s := serve(t, numbered)
	o := options(s.URL)
	o.Memory, o.Encoder = hook.NewMemory(1<<20), hook.NewEncoder(1<<20)
	one, two := newHook(t, o), newHook(t, o)
	other := catset("1")
	other.SetUID("other")
	q, p := &hook.Question{Parent: catset("1")}, &hook.Question{Parent: other}
	if a, b, c := statusCall(t, one, q), statusCall(t, two, q), statusCall(t, one, p); a != 1 || b != 2 || c != 3 {
		t.Fatalf("answers %d, %d and %d", a, b, c)
	}
	one.Close()
	if a, b := statusCall(t, one, q), statusCall(t, two, q); a != 4 || b != 2 {
		t.Errorf("closed: answers %d and %d", a, b)
	}
	o.Memory.Forget("parent-uid")
	o.Encoder.Forget(catset("1"))
	if a, b := statusCall(t, two, q), statusCall(t, one, q); a != 5 || b != 6 {
		t.Errorf("forgotten: answers %d and %d", a, b)
	}
}

func TestAFailureIsNotRemembered(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, calls []call) {
		if len(calls)%2 == 0 {
			fmt.Fprint(w, `{}`)
			return
		}
		numbered(w, calls)
	})
	h := newHook(t, options(s.URL))
	one, two := &hook.Question{Parent: catset("1")}, &hook.Question{Parent: catset("2")}
	if got := statusCall(t, h, one); got != 1 {
		t.Fatal(got)
	}
	if _, err := h.Ask(t.Context(), two); failure(t, err).Reason != hook.Incomplete {
		t.Fatal(err)
	}
	if got := statusCall(t, h, one); got != 1 {
		t.Errorf("the good answer is gone: %d", got)
	}
	if got := statusCall(t, h, two); got != 3 {
		t.Errorf("the failure stands for an answer: %d", got)
	}
}

// TestTheSameAnswer: what is said again is not read again, so that whoever compares answers sees that nothing changed.
func TestTheSameAnswer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, calls []call) {
		fmt.Fprintf(w, `{"status":{"half":%d},"children":[]}`, len(calls)/2)
	})
	h := newHook(t, options(s.URL))
	q := &hook.Question{Parent: catset("1"), Again: true}
	var answers []*hook.Answer
	for range 4 { // 0 1 1 2
		answer, err := h.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	if answers[0] == answers[1] || answers[1] != answers[2] || answers[2] == answers[3] || s.count() != 4 {
		t.Errorf("%d calls, answers %v", s.count(), answers)
	}
	if got := answers[3].Status["half"]; got != int64(2) {
		t.Errorf("the last answer is %v", got)
	}
}

// conditional answers by revision, which it reads off the parent, and with 304 or 412 when it can.
func conditional(same int) func(http.ResponseWriter, []call) {
	return func(w http.ResponseWriter, calls []call) {
		last := calls[len(calls)-1]
		w.Header().Set("ETag", `"the same for all"`)
		if last.header.Get("If-None-Match") != "" {
			w.WriteHeader(same)
			return
		}
		numbered(w, calls)
	}
}

func TestETags(t *testing.T) {
	for _, same := range []int{http.StatusNotModified, http.StatusPreconditionFailed} {
		s := serve(t, conditional(same))
		o := options(s.URL)
		o.Declared.Webhook.Etag = &v1alpha1.WebhookEtag{Enabled: new(true)}
		h := newHook(t, o)
		ask := func(version, revision string) int64 {
			return statusCall(t, h, &hook.Question{Parent: catset(version), Revision: revision})
		}
		// Metacontroller has one entry for a parent, and would answer r2 with what it was told of r1.
		if a, b := ask("1", "r1"), ask("1", "r2"); a != 1 || b != 2 {
			t.Fatalf("answers %d and %d", a, b)
		}
		if got := s.last().header.Get("If-None-Match"); got != "" {
			t.Fatalf("r2 was asked with %s, which is r1's", got)
		}
		if a, b := ask("2", "r1"), ask("2", "r2"); a != 1 || b != 2 {
			t.Errorf("answers %d and %d", a, b)
		}
		if got := s.last().header.Get("If-None-Match"); got != `"the same for all"` || s.count() != 4 {
			t.Errorf("%d calls, the last one with %q", s.count(), got)
		}
		if ask("2", "r1"); s.count() != 4 {
			t.Error("the same question was asked again")
		}
	}
}

func TestETagsAreForThoseWhoWantThem(t *testing.T) {
	s := serve(t, conditional(http.StatusNotModified))
	h := newHook(t, options(s.URL))
	for i := range int64(3) {
		if got := statusCall(t, h, &hook.Question{Parent: catset(fmt.Sprint(i))}); got != i+1 {
			t.Errorf("call %d", got)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := serve(t, numbered)
	o := options(s.URL)
	o.Memory, o.Encoder = hook.NewMemory(2500), hook.NewEncoder(100) // two answers
	h := newHook(t, o)
	ask := func(name string) int64 {
		p := catset("1")
		p.SetName(name)
		p.SetUID(types.UID(name))
		return statusCall(t, h, &hook.Question{Parent: p})
	}
	if a, b := ask("a"), ask("b"); a != 1 || b != 2 {
		t.Fatal(a, b)
	}
	if a := ask("a"); a != 1 { // and now b is the oldest
		t.Fatal(a)
	}
	if c := ask("c"); c != 3 {
		t.Fatal(c)
	}
	if a, b := ask("a"), ask("b"); a != 1 || b != 4 {
		t.Errorf("a's answer is call %d, b's is call %d", a, b)
	}
}

func TestCustomizeIsAskedByWhatPeopleWrite(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, calls []call) {
		fmt.Fprintf(w, `{"relatedResources":[{"apiVersion":"v1","resource":"pods","namespace":"ns","names":["call-%d"]}]}`, len(calls))
	})
	o := options(s.URL)
	o.Kind = hook.Customize
	h := newHook(t, o)
	for i, c := range []struct {
		name  string
		edit  func(*hook.Question)
		calls int
	}{
		{"first", func(q *hook.Question) { q.Parent.SetGeneration(1) }, 1},
		{"status", func(q *hook.Question) { q.Parent.SetGeneration(1); q.Parent.SetResourceVersion("2") }, 1},
		{"spec", func(q *hook.Question) { q.Parent.SetGeneration(2) }, 2},
		{"another revision", func(q *hook.Question) { q.Parent.SetGeneration(2); q.Revision = "r1" }, 3},
		{"and back", func(q *hook.Question) { q.Parent.SetGeneration(2) }, 3},
		{"a label", func(q *hook.Question) { q.Parent.SetGeneration(2); q.Parent.SetLabels(map[string]string{"a": "b"}) }, 4},
		{"no label", func(q *hook.Question) { q.Parent.SetGeneration(2) }, 5},
		{"an annotation", func(q *hook.Question) {
			q.Parent.SetGeneration(2)
			q.Parent.SetAnnotations(map[string]string{"a": "b"})
		}, 6},
		{"no generation", func(*hook.Question) {}, 7},
		{"no generation, status", func(q *hook.Question) { q.Parent.SetResourceVersion("2") }, 8},
		{"no generation, our status", func(q *hook.Question) { q.Parent.SetResourceVersion("3"); q.Version = "2" }, 8},
	} {
		q := &hook.Question{Parent: catset("1")}
		c.edit(q)
		rules, err := h.AskRelated(t.Context(), q)
		if err != nil || len(rules) != 1 {
			t.Fatal(i, rules, err)
		}
		if s.count() != c.calls {
			t.Errorf("%s: %d calls, want %d", c.name, s.count(), c.calls)
		}
	}
}

func TestManyAskAtOnce(t *testing.T) {
	s := serve(t, always(noChildren))
	secrets := fakeSecrets{"s": {"token": []byte("t")}}
	o := options(s.URL)
	o.Secrets, o.Declared.Webhook.Etag = secrets, &v1alpha1.WebhookEtag{Enabled: new(true)}
	o.Declared.Webhook.Authorization = &v1alpha1.Authorization{SecretRef: secretKey("token")}
	o.Memory, o.Encoder = hook.NewMemory(300), hook.NewEncoder(300) // less than there is
	h := newHook(t, o)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 20 {
				p := catset(fmt.Sprint(n))
				p.SetUID(types.UID(fmt.Sprint(i % 4)))
				q := &hook.Question{Parent: p, Revision: fmt.Sprint("r", i%2), Children: pods(pod("a", fmt.Sprint(n)))}
				if _, err := h.Ask(t.Context(), q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
