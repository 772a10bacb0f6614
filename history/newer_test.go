package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// TestFieldsOfANewerServer writes down what happens to a field of a template that the library's types do not know,
// which a newer API server serves: it is dropped where the parent is read, before anything here can see it. An edit of
// nothing but that field is no new revision, and a revision of the built-in controller that has it counts as equal to
// one without. Nothing here can do better with typed parents; a manager has to tell a server that is newer than its
// library.
func TestFieldsOfANewerServer(t *testing.T) {
	known := agent("agent:1")
	raw, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	var served appsv1.DaemonSet
	if err := json.Unmarshal([]byte(strings.Replace(string(raw), `"dnsPolicy"`, `"fromTheFuture":"a","dnsPolicy"`, 1)), &served); err != nil {
		t.Fatal(err)
	}
	target := history.DaemonSet().Target()
	ours, err := target.Snapshot(&served)
	if err != nil || strings.Contains(string(ours.Data()), "fromTheFuture") {
		t.Fatalf("it is known by now: %s, %v", ours.Data(), err)
	}
	theirs, err := target.Decode([]byte(strings.Replace(string(ours.Data()), `"dnsPolicy"`, `"fromTheFuture":"a","dnsPolicy"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if rule := revision.Compare(ours, theirs); rule != revision.RuleNormal {
		t.Errorf("equal by rule %q", rule)
	}
	if !strings.Contains(string(theirs.Data()), "fromTheFuture") {
		t.Error("what is stored was changed")
	}
}
