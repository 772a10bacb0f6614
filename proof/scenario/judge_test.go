package scenario

import (
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/proof/check"
)

// A script that expects a violation fails without it, and any other violation fails every script.
func TestVerdict(t *testing.T) {
	found := []check.Violation{{Invariant: "P4", Sentence: "wrong content"}, {Invariant: "R4", Sentence: "not complete"}}
	for line, want := range map[string][]string{
		"settle":                     {"wrong content", "not complete"},
		"expect violations none":     {"wrong content", "not complete"},
		"expect violations P4 R4":    nil,
		"expect violations R4":       {"wrong content"},
		"expect violations P4 R4 H2": {"expects a violation of H2"},
	} {
		s, err := parse(t, line+"\n")
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Play(t.Context(), newFakeStage())
		if err != nil {
			t.Fatal(err)
		}
		err = p.verdict(&check.History{}, found).Err()
		if (err == nil) != (len(want) == 0) {
			t.Errorf("%s: the verdict is %v", line, err)
		}
		for _, sentence := range want {
			if err != nil && !strings.Contains(err.Error(), sentence) {
				t.Errorf("%s: the verdict is %v, which does not say %q", line, err, sentence)
			}
		}
	}
}

// The end is judged at rest only if somebody keeps the world at rest.
func TestJudgeSettlesWhileAManagerRuns(t *testing.T) {
	for text, want := range map[string]string{
		"create configmap a\n":               "start 1 settle",
		"create configmap a\nkill manager\n": "start 1 kill 1",
	} {
		stage := newFakeStage()
		s, err := parse(t, text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Play(t.Context(), stage)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Judge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(stage.log, " "); got != want {
			t.Errorf("%s: the stage was asked for %q, want %q", text, got, want)
		}
	}
}

func TestUnknownControllers(t *testing.T) {
	s := &Script{Name: "bug.txt", Controllers: []string{"deployment"}}
	if _, err := s.Scopes(); err == nil || !strings.Contains(err.Error(), `knows no controller "deployment"; it knows: cronjob, daemonset, replicaset, replicationcontroller, statefulset`) {
		t.Errorf("the error is %v", err)
	}
	s.Controllers = []string{"daemonset", "statefulset"}
	scopes, err := s.Scopes()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[check.Scope]bool{}
	for _, scope := range scopes {
		if seen[scope] {
			t.Errorf("%v is recorded twice", scope)
		}
		seen[scope] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %v are recorded", scopes)
	}
}
