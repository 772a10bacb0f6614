package builder

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// What lost children come back from: one that was complete, then one that others come from; and while nothing can be recorded, the newest
// revision stands for the one that the spec asks for.
func TestWhatLostChildrenComeFrom(t *testing.T) {
	r := reconcilerOf(t, sound())
	for name, c := range map[string]struct {
		update    string
		used      []string
		completed []types.UID
		want      string
	}{
		"the one that others come from":               {"3", []string{"1", "3"}, nil, "1"},
		"the newest of them":                          {"3", []string{"1", "2", "3"}, nil, "2"},
		"one that was complete before one that never": {"3", []string{"1", "2"}, []types.UID{"1"}, "1"},
		"one that was complete, if there is no other": {"3", []string{"3"}, []types.UID{"1", "2"}, "2"},
		"none, if the update revision was complete":   {"3", []string{"3"}, []types.UID{"2", "3"}, ""},
		"nothing is recorded, in a rollout":           {"", []string{"1", "3"}, nil, "1"},
		"nothing is recorded, after a rollout":        {"", []string{"3"}, []types.UID{"1", "3"}, "3"},
		"nothing is recorded, and nothing is there":   {"", nil, nil, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observed{completed: map[types.UID]bool{}}
			var children []client.Object
			for _, hash := range c.used {
				children = append(children, at("", "c"+hash, hash))
			}
			o.children = [][]client.Object{children}
			for _, uid := range c.completed {
				o.completed[uid] = true
			}
			snapshot, err := r.target.Snapshot(shop())
			if err != nil {
				t.Fatal(err)
			}
			recorded := &pass.Recorded{}
			for i, hash := range []string{"1", "2", "3"} {
				e := revision.Revision{UID: types.UID(hash), Name: hash, Hash: hash, Number: int64(i + 1), Snapshot: snapshot}
				recorded.Entries = append(recorded.Entries, e)
				if hash == c.update {
					recorded.Update = &e
				}
			}
			got := ""
			if from := r.olderOf(o, recorded); from != nil {
				got = from.Hash
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
