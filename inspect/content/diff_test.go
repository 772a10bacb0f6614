package content

import (
	"testing"

	"github.com/cairn-dev/cairn/history"
)

// TestContent: what a person is shown is the content, not how it was once encoded.
func TestContent(t *testing.T) {
	s, err := history.DaemonSet().Target().Decode([]byte(
		`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"a":"b"}},"spec":{"activeDeadlineSeconds":9007199254740993,"containers":[]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := JSON(s)
	const want = `{"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"activeDeadlineSeconds":9007199254740993,"containers":[]}}}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestUnified(t *testing.T) {
	got, err := Unified("before", []byte(`{"a":1,"b":9007199254740993}`), "after", []byte(`{"a":2,"b":9007199254740993}`))
	const want = "--- before\n+++ after\n@@ -1,2 +1,2 @@\n-a: 1\n+a: 2\n b: 9007199254740993\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err = Unified("before", []byte(`{"a":1,"b":2}`), "after", []byte(`{"b":2,"a":1}`)); err != nil || got != "" {
		t.Errorf("equal documents differ: %q, %v", got, err)
	}
}
