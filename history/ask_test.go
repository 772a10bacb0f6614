package history_test

// Rule E3: the API server is asked whether a stored revision is what the parent asks for, as seldom as possible, and
// believed only where it says yes.

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

func asking(s *server) *history.Log {
	return history.New(history.DaemonSet(), history.Options{Client: s, Indexed: true, AskServer: true})
}

// undefaulted is a revision from before dnsPolicy had a default.
func undefaulted(t *testing.T, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	ds := agent(image)
	ds.Spec.Template.Spec.DNSPolicy = ""
	return revisionOf(t, ds, image, number)
}

func TestAskEqual(t *testing.T) {
	old := undefaulted(t, "agent:1", 1)
	s := newServer(t, agent("agent:1"), old)
	log := asking(s)
	before := s.parent()
	v, recorded := mustPass(t, log, s.parent())
	if v.Change != revision.NoChange || v.Rule != revision.RuleServer || recorded.Update.Name != old.Name || recorded.CollisionCount != nil {
		t.Errorf("%s by rule %s: %+v", v.Change, v.Rule, recorded)
	}
	// The question is about this very version of the parent, and replaces the template as a whole.
	asked := s.Calls("dry-run")
	if len(asked) != 1 || asked[0].Kind != "DaemonSet" || asked[0].Name != "agent" {
		t.Fatalf("asked %v", asked)
	}
	for _, part := range []string{
		`{"op":"replace","path":"/metadata/uid","value":"agent-uid"}`,
		`{"op":"replace","path":"/metadata/resourceVersion","value":"` + before.ResourceVersion + `"}`,
		`{"op":"add","path":"/spec/template","value":{`,
	} {
		if !strings.Contains(asked[0].Body, part) {
			t.Errorf("the question %s lacks %s", asked[0].Body, part)
		}
	}
	if diff := cmp.Diff(before, s.parent()); diff != "" {
		t.Errorf("asking changed the parent:\n%s", diff)
	}
	// The answer is stamped on the revision, whose data stays (E4).
	if writes := s.Writes(); len(writes) != 1 || writes[0].Verb != "patch" || !strings.Contains(writes[0].Body, history.ParentGenerationAnnotation) {
		t.Errorf("wrote %v", writes)
	}
	if diff := cmp.Diff(old.Data, s.stored()[old.Name].Data); diff != "" {
		t.Errorf("data changed:\n%s", diff)
	}
	s.Forget()
	// Another process believes the stamp where the server cannot be asked, and asks once where it can: anybody who may
	// write revisions can write a stamp.
	v, _ = mustPass(t, asking(s), s.parent())
	if v.Rule != revision.RuleServer || len(s.Calls("dry-run")) != 1 || len(s.Writes()) != 0 {
		t.Errorf("by rule %s with %v", v.Rule, s.Calls())
	}
}

// TestAnswersAreCached resolves again and again without recording.
func TestAnswersAreCached(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		kind   revision.Change
	}{
		"equal":      {nil, revision.NoChange},
		"forbidden":  {apierrors.NewForbidden(schema.GroupResource{}, "agent", errors.New("no")), revision.RollForward},
		"invalid":    {apierrors.NewInvalid(schema.GroupKind{}, "agent", nil), revision.RollForward},
		"no dry run": {apierrors.NewBadRequest("admission webhook does not support dry run"), revision.RollForward},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"), undefaulted(t, "agent:1", 1))
			if c.answer != nil {
				s.Before = fail("dry-run", c.answer)
			}
			log := asking(s)
			for range 3 {
				if v := resolve(t, log, s.parent()); v.Change != c.kind {
					t.Errorf("%s: %s", v.Change, v.Reason)
				}
			}
			if got := s.Calls("dry-run"); len(got) != 1 {
				t.Errorf("asked %d times", len(got))
			}
			// A new generation, and a new version of the revision, are new questions.
			resolve(t, log, s.edit(func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 1 }))
			if got := s.Calls("dry-run"); len(got) != 2 {
				t.Errorf("asked %d times after a change of the parent", len(got))
			}
			for _, o := range s.stored() {
				o.Annotations = map[string]string{"touched": "yes"}
				if err := s.Raw.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			resolve(t, log, s.parent())
			if got := s.Calls("dry-run"); len(got) != 3 {
				t.Errorf("asked %d times after a change of the revision", len(got))
			}
		})
	}
}

func TestAskRefused(t *testing.T) {
	s := newServer(t, agent("agent:1"), undefaulted(t, "agent:1", 1))
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "agent", nil)
	s.Before = fail("dry-run", refusal)
	v, recorded := mustPass(t, asking(s), s.parent())
	if v.Change != revision.RollForward || recorded.Update.Number != 2 {
		t.Errorf("%s to revision %d", v.Change, recorded.Update.Number)
	}
	if len(v.Refused) != 1 || !errors.Is(v.Refused[0], refusal) || !strings.Contains(v.Refused[0].Error(), "refuses to restore revision agent-") {
		t.Errorf("refused: %v", v.Refused)
	}
}

// TestAskRefusedAboutAStamp asks about a revision that claims to be of this very generation. A webhook that takes no
// dry runs must not restart every pod after an upgrade.
func TestAskRefusedAboutAStamp(t *testing.T) {
	parent := agent("agent:1")
	old := undefaulted(t, "agent:1", 1)
	old.Annotations = map[string]string{
		history.ParentUIDAnnotation:        string(parent.UID),
		history.ParentGenerationAnnotation: strconv.FormatInt(parent.Generation, 10),
	}
	s := newServer(t, parent, old)
	s.Before = fail("dry-run", apierrors.NewForbidden(schema.GroupResource{}, "agent", errors.New("no dry runs")))
	v, _ := mustPass(t, asking(s), s.parent())
	if v.Change != revision.NoChange || len(v.Refused) != 1 || len(s.Writes()) != 0 {
		t.Errorf("%s (%s), refused %v, wrote %v", v.Change, v.Reason, v.Refused, s.Writes())
	}
}

// An error that is no answer leaves the question open.
func TestAskUnanswered(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		stale bool
	}{
		"conflict": {apierrors.NewConflict(schema.GroupResource{}, "agent", errors.New("changed")), true},
		"internal": {apierrors.NewInternalError(errors.New("boom")), false},
		"timeout":  {apierrors.NewTimeoutError("boom", 0), false},
		"too many": {apierrors.NewTooManyRequests("boom", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"), undefaulted(t, "agent:1", 1))
			s.Before = fail("dry-run", c.err)
			log := asking(s)
			if v, _, err := pass(t.Context(), log, s.parent()); v != nil || err == nil || errors.Is(err, history.ErrStale) != c.stale {
				t.Errorf("%v, %v", v, err)
			}
			if len(s.Writes()) != 0 {
				t.Errorf("wrote %v", s.Writes())
			}
			s.Before = nil
			if v := resolve(t, log, s.parent()); v.Change != revision.NoChange {
				t.Errorf("later %s: %s", v.Change, v.Reason)
			}
		})
	}
}

// TestAskOlderRead asks about a parent that has changed since it was read.
func TestAskOlderRead(t *testing.T) {
	s := newServer(t, agent("agent:1"), undefaulted(t, "agent:1", 1))
	old := s.parent()
	s.edit(func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 1 })
	if _, _, err := pass(t.Context(), asking(s), old); !errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 {
		t.Errorf("wrote %v, %v", s.Writes(), err)
	}
}

func TestNotAsked(t *testing.T) {
	for name, c := range map[string]struct {
		log    func(*server) *history.Log
		parent *appsv1.DaemonSet
		stored string
	}{
		"not allowed": {func(s *server) *history.Log { return newLog(s) }, agent("agent:1"), "agent:1"},
		"other image": {asking, agent("agent:2"), "agent:1"},
		"other policy": {asking, func() *appsv1.DaemonSet {
			ds := agent("agent:1")
			ds.Spec.Template.Spec.DNSPolicy = corev1.DNSNone
			return ds
		}(), "defaulted"},
	} {
		t.Run(name, func(t *testing.T) {
			o := undefaulted(t, "agent:1", 1)
			if c.stored == "defaulted" {
				o = revisionOf(t, agent("agent:1"), "agent:1", 1)
			}
			s := newServer(t, c.parent, o)
			v, recorded := mustPass(t, c.log(s), s.parent())
			if v.Change != revision.RollForward || recorded.Update.Number != 2 || len(s.Calls("dry-run")) != 0 {
				t.Errorf("%s to revision %d with %v", v.Change, recorded.Update.Number, s.Calls("dry-run"))
			}
		})
	}
}

// TestAskDifferent: the field that the revision lacks is no default of the server. Every revision that could be equal
// is asked about, the newest first, until one is.
func TestAskDifferent(t *testing.T) {
	ds := agent("agent:1")
	ds.Spec.Template.Spec.HostPID = true
	other := undefaulted(t, "agent:1", 5)
	other.Name, other.UID = "agent-other", "other"
	other.Data.Raw = []byte(strings.Replace(string(other.Data.Raw), `"containers"`, `"hostPID":true,"containers"`, 1))
	s := newServer(t, ds, undefaulted(t, "agent:1", 9), other)
	v := resolve(t, asking(s), s.parent())
	if v.Change != revision.Rollback || v.Update.Name != "agent-other" {
		t.Errorf("%s: %s", v.Change, v.Reason)
	}
	asked := s.Calls("dry-run")
	if len(asked) != 2 || strings.Contains(asked[0].Body, "hostPID") || !strings.Contains(asked[1].Body, "hostPID") {
		t.Errorf("asked %v", asked)
	}
}
