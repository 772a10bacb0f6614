package hook_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// A caller that knows a change of the parent to be its own write of the status says so.
func TestOwnWritesAreNoNews(t *testing.T) {
	s := serve(t, conditional(http.StatusNotModified))
	o := options(s.URL)
	o.Declared.Webhook.Etag = &v1alpha1.WebhookEtag{Enabled: new(true)}
	h := newHook(t, o)
	for i, c := range []struct {
		name, version, as, revision string
		answer                      int64
		calls                       int
	}{
		{"first", "1", "", "", 1, 1},
		{"our own write", "2", "1", "", 1, 1},
		{"said once more", "3", "1", "", 1, 1},
		{"its own version, said so", "1", "1", "", 1, 1},
		{"the revision counts all the same", "3", "1", "r1", 2, 2},
		{"and is remembered in the same way", "4", "1", "r1", 2, 2},
		{"news, and the hook may say that its answer stands", "4", "", "", 1, 3},
		{"what was asked last counts", "5", "4", "", 1, 3},
		{"and not what was asked before it", "5", "1", "", 1, 4},
	} {
		q := &hook.Question{Parent: catset(c.version), Version: c.as, Revision: c.revision}
		if got := statusCall(t, h, q); got != c.answer || s.count() != c.calls {
			t.Errorf("%d, %s: answer %d after %d calls, want %d after %d", i, c.name, got, s.count(), c.answer, c.calls)
		}
	}
	if want := `"resourceVersion":"5"`; !strings.Contains(s.last().body, want) {
		t.Errorf("the hook was not told the parent as it is: %s", s.last().body)
	}
}
