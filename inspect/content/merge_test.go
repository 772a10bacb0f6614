package content

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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
			got, err := json.Marshal(merger{hashes: []string{"hash1", "hash2"}}.fields(trees[0], trees[1], trees[2], nil))
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestFollow: a manifest follows the changes of an undo, and gets nothing whose removal by the next apply would remove
// what belongs to another manager.
func TestFollow(t *testing.T) {
	const theirs = `{"f:at":{},"f:r":{"f:mem":{}},` +
		`"f:c":{"k:{\"name\":\"a\"}":{"f:cpu":{}},"k:{\"name\":\"side\"}":{".":{},"f:name":{}}},"f:ports":{"k:{\"p\":80,\"protocol\":\"TCP\"}":{}}}`
	for name, c := range map[string]struct{ manifest, before, after, want string }{
		"its own field":                  {`{"image":"b"}`, `{"image":"b","policy":"Always"}`, `{"image":"a","policy":"Always"}`, `{"image":"a"}`},
		"a field that the undo adds":     {`{"x":1}`, `{"x":1}`, `{"x":1,"y":{"z":1}}`, `{"x":1,"y":{"z":1}}`},
		"a default that it changes":      {`{"x":1}`, `{"x":1,"grace":30}`, `{"x":1,"grace":5}`, `{"grace":5,"x":1}`},
		"a blank default that it fills":  {`{"x":1}`, `{"x":1,"sec":{},"l":[]}`, `{"x":1,"sec":{"user":1},"l":["a"]}`, `{"l":["a"],"sec":{"user":1},"x":1}`},
		"a field of another manager":     {`{"x":1}`, `{"x":1,"at":"2","r":{"mem":2}}`, `{"x":1,"at":"1","r":{"mem":1}}`, `{"x":1}`},
		"what it adds to another's map":  {`{}`, `{"r":{"mem":2}}`, `{"r":{"cpu":1,"mem":1}}`, `{}`},
		"what it adds to another's list": {`{}`, `{"env":[{"name":"F"}]}`, `{"env":[{"name":"F"},{"name":"G"}]}`, `{}`},
		"an atomic list of another":      {`{}`, `{"tol":[{"key":"a"}]}`, `{"tol":[{"key":"a"},{"key":"b"}]}`, `{}`},
		"an element of another":          {`{"c":[{"name":"a"}]}`, `{"c":[{"name":"a"},{"name":"side"}]}`, `{"c":[{"name":"a"},{"name":"side","tty":true}]}`, `{"c":[{"name":"a"}]}`},
		"a field of another in an element": {
			`{"c":[{"name":"a"}]}`, `{"c":[{"name":"a","cpu":2,"pull":"No"}]}`, `{"c":[{"name":"a","cpu":1,"pull":"Yes"}]}`,
			`{"c":[{"name":"a","pull":"Yes"}]}`,
		},
		"an element that the undo adds": {`{"c":[{"name":"a"}]}`, `{"c":[{"name":"a"}]}`, `{"c":[{"name":"a"},{"name":"b","x":1}]}`, `{"c":[{"name":"a"},{"name":"b","x":1}]}`},
		"ports without the protocol": {
			`{"ports":[{"containerPort":80},{"containerPort":90}]}`,
			`{"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":90,"protocol":"TCP"}]}`,
			`{"ports":[{"containerPort":80,"name":"http","protocol":"TCP"}]}`,
			`{"ports":[{"containerPort":80,"name":"http"}]}`,
		},
		"ports of two protocols": {
			`{"ports":[{"port":53},{"port":53,"protocol":"UDP"}]}`,
			`{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}`,
			`{"ports":[{"port":53,"protocol":"TCP"}]}`,
			`{"ports":[{"port":53}]}`,
		},
		"a list that only another's element is left in": {
			`{"env":[{"name":"M"}],"x":1}`, `{"env":[{"name":"O"},{"name":"M"}],"x":1}`, `{"env":[{"name":"O"}],"x":1}`, `{"x":1}`,
		},
		"a map that only another's field is left in": {
			`{"m":{"l":{"a":1}}}`, `{"m":{"l":{"a":1,"o":1}}}`, `{"m":{"l":{"o":1}}}`, `{}`,
		},
		"a list that is empty in the manifest": {`{"env":[]}`, `{"env":[{"name":"O","value":"2"}]}`, `{"env":[{"name":"O","value":"1"}]}`, `{"env":[]}`},
		"null":                                 {`{"env":null}`, `{"env":[{"name":"O","value":"2"}]}`, `{"env":[{"name":"O","value":"1"}]}`, `{}`},
		"nothing of the spec":                  {`{"kind":"A"}`, `{"kind":"A","spec":{"t":{"x":2,"d":1}}}`, `{"kind":"A","spec":{"t":{"x":1,"d":1}}}`, `{"kind":"A"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var trees [3]map[string]any
			for n, text := range []string{c.manifest, c.before, c.after} {
				var err error
				if trees[n], err = decoded([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			others := fieldpath.NewSet()
			if err := others.FromJSON(strings.NewReader(theirs)); err != nil {
				t.Fatal(err)
			}
			followed, err := Follow(trees[0], trees[1], trees[2], others)
			got, _ := json.Marshal(followed)
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}
