package history_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// The name of a revision follows from its content, for every format whose names are known: whoever writes one by hand,
// with a name and a hash label that go together, has made no revision of a controller. Of a DaemonSet's it can only be
// said that it is genuine.
func TestGenuine(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: agent("").ObjectMeta}
	set.Spec.Template = agent("agent:1").Spec.Template
	for name, c := range map[string]struct {
		format *history.Apps
		parent client.Object
		// planted is what is known of one that was written by hand.
		planted bool
	}{
		"DaemonSet":   {history.DaemonSet(), agent("agent:1"), false},
		"StatefulSet": {history.StatefulSet(), set, true},
	} {
		for _, collisions := range []*int32{nil, new(int32(0)), new(int32(3))} {
			s, err := c.format.Snapshot(c.parent)
			if err != nil {
				t.Fatal(err)
			}
			o, err := c.format.Object(c.parent, s, collisions, 1, history.ReadStamp(c.parent))
			if err != nil {
				t.Fatal(err)
			}
			stored := o.(*appsv1.ControllerRevision)
			if genuine, known := c.format.Genuine(c.parent, stored); !genuine || !known {
				t.Errorf("%s: one of ours is genuine %v, known %v", name, genuine, known)
			}
			spaced := stored.DeepCopy()
			var indented bytes.Buffer
			if err := json.Indent(&indented, stored.Data.Raw, "", " "); err != nil {
				t.Fatal(err)
			}
			spaced.Data.Raw = indented.Bytes()
			if genuine, _ := c.format.Genuine(c.parent, spaced); !genuine {
				t.Errorf("%s: one of ours in another spelling is not genuine", name)
			}
			spaced.OwnerReferences = nil
			if err := c.format.Adoptable(c.parent, spaced, nil); err != nil {
				t.Errorf("%s: one of ours is not adopted: %v", name, err)
			}

			planted := stored.DeepCopy()
			planted.OwnerReferences = nil
			planted.Data.Raw = []byte(strings.Replace(string(planted.Data.Raw), "agent:1", "evil:1", 1))
			genuine, known := c.format.Genuine(c.parent, planted)
			err = c.format.Adoptable(c.parent, planted, nil)
			if genuine || known != c.planted || (err != nil) != c.planted {
				t.Errorf("%s: one that was planted is genuine %v, known %v: %v", name, genuine, known, err)
			}
		}
		foreign := *c.format
		foreign.Foreign = true
		if _, known := foreign.Genuine(c.parent, &appsv1.ControllerRevision{}); known {
			t.Errorf("%s: something is known of the names of others", name)
		}
	}
}
