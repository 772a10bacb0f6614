package content

import (
	"encoding/json"
	"testing"
)

// TestMerge: what differs between two revisions is brought back into an object that was never filled in.
func TestMerge(t *testing.T) {
	for name, c := range map[string]struct{ live, from, to, want string }{
		"an image": {
			`{"containers":[{"name":"a","image":"2"}]}`,
			`{"containers":[{"name":"a","image":"2","pull":"IfNotPresent"}],"dns":"First"}`,
			`{"containers":[{"name":"a","image":"1","pull":"IfNotPresent"}],"dns":"First"}`,
			`{"containers":[{"image":"1","name":"a"}]}`,
		},
		"a field that was set then": {`{"a":1}`, `{"a":1,"grace":30}`, `{"a":1,"grace":60}`, `{"a":1,"grace":60}`},
		"a field that is new":       {`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":1}`, `{"a":1}`},
		"a field that went":         {`{"a":1}`, `{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		"a field of the user's own": {`{"a":2,"mine":1}`, `{"a":2}`, `{"a":1}`, `{"a":1,"mine":1}`},
		"what the controller adds":  {`{"a":2}`, `{"a":2,"affinity":{"not":["hash2"]}}`, `{"a":1,"affinity":{"not":["hash1"]}}`, `{"a":1}`},
		"a container more, one less": {
			`{"c":[{"name":"a"},{"name":"new"},{"name":"mine"}]}`, `{"c":[{"name":"a","x":1},{"name":"new","x":1}]}`, `{"c":[{"name":"old","x":1},{"name":"a","x":1}]}`,
			`{"c":[{"name":"old","x":1},{"name":"a"},{"name":"mine"}]}`,
		},
		"another order": {`{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"a","x":1},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"a","x":1}]}`, `{"c":[{"name":"b"},{"name":"a"}]}`},
		"a list":        {`{"args":["x"]}`, `{"args":["x"]}`, `{"args":["y","z"]}`, `{"args":["y","z"]}`},
		"another type":  {`{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":"b"}`, `{"a":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var trees [3]map[string]any
			for n, text := range []string{c.live, c.from, c.to} {
				var err error
				if trees[n], err = decoded([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := json.Marshal(merger{[]string{"hash1", "hash2"}}.fields(trees[0], trees[1], trees[2]))
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}
