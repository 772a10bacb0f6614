package bluegreen

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// world is a BlueGreen with the children that the hook has wanted so far.
type world struct {
	*testing.T

	url         string
	image       string
	replicas    int
	replicaSets map[string]m
	services    map[string]m
	status      m
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := httptest.NewServer(Hook())
	t.Cleanup(server.Close)
	return &world{T: t, url: server.URL, image: "shop:1", replicas: 2, replicaSets: map[string]m{}, services: map[string]m{}}
}

// pass asks the hook once and does what it says. Observed objects keep what they had, as under apply.
func (w *world) pass() {
	w.Helper()
	body, err := json.Marshal(m{
		"parent": m{"metadata": m{"name": "shop"}, "spec": m{
			"replicas": w.replicas, "selector": m{"matchLabels": m{"app": "shop"}}, "ports": []m{{"port": 80}},
			"template": m{"metadata": m{"labels": m{"app": "shop"}}, "spec": m{"containers": []m{{"name": "shop", "image": w.image}}}},
		}},
		"children": m{"ReplicaSet.apps/v1": w.replicaSets, "Service.v1": w.services},
	})
	if err != nil {
		w.Fatal(err)
	}
	r, err := http.Post(w.url+"/sync", "application/json", strings.NewReader(string(body)))
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var answer struct {
		Status   m
		Children []m
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		w.Fatalf("%s: %v", r.Status, err)
	}
	w.status = answer.Status
	for _, child := range answer.Children {
		metadata := child["metadata"].(m)
		name := metadata["name"].(string)
		if child["kind"] == "Service" {
			w.services[name] = child
			continue
		}
		generation := 1
		if old := w.replicaSets[name]; old != nil {
			child["status"] = old["status"]
			generation = old["metadata"].(m)["generation"].(int)
			if fmt.Sprint(old["spec"]) != fmt.Sprint(child["spec"]) {
				generation++
			}
		}
		metadata["generation"] = generation
		w.replicaSets[name] = child
	}
}

// settle gives a ReplicaSet the pods that it asks for, and so many of them that are available.
func (w *world) settle(color string, available int) {
	w.Helper()
	s := w.replicaSets["shop-"+color]
	s["status"] = m{
		"observedGeneration": s["metadata"].(m)["generation"], "replicas": s["spec"].(m)["replicas"], "availableReplicas": available,
	}
}

// sees fails the test unless requests go to a colour, and the ReplicaSets are as described, such as "shop:1 x 2".
func (w *world) sees(what, live, blue, green string) {
	w.Helper()
	of := func(color string) string {
		s := w.replicaSets["shop-"+color]
		if s == nil {
			return ""
		}
		spec := s["spec"].(m)
		pod := spec["template"].(m)
		if labels := pod["metadata"].(m)["labels"].(m); labels["color"] != color || labels["app"] != "shop" {
			w.Errorf("%s: the pods of %s have labels %v", what, color, labels)
		}
		image := pod["spec"].(m)["containers"].([]any)[0].(m)["image"]
		return fmt.Sprintf("%v x %v", image, spec["replicas"])
	}
	color := w.services["shop"]["spec"].(m)["selector"].(m)["color"]
	if color != live || of("blue") != blue || of("green") != green {
		w.Errorf("%s: %v is live, blue %q, green %q; want %s, %q, %q (%v)", what, color, of("blue"), of("green"), live, blue, green, w.status)
	}
}

func TestSwitchAndBack(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.sees("at first", "blue", "shop:1 x 2", "")
	w.settle("blue", 2)
	w.pass()
	w.sees("then", "blue", "shop:1 x 2", "")

	w.image = "shop:2"
	w.pass()
	w.sees("a new template", "blue", "shop:1 x 2", "shop:2 x 2")
	w.settle("green", 1)
	w.pass()
	w.sees("not all are available", "blue", "shop:1 x 2", "shop:2 x 2")
	w.settle("green", 2)
	w.pass()
	w.sees("all are", "green", "shop:1 x 2", "shop:2 x 2")
	w.pass()
	w.sees("after the switch", "green", "shop:1 x 0", "shop:2 x 2")
	w.settle("blue", 0)

	w.image = "shop:1"
	w.pass()
	w.sees("an undo", "green", "shop:1 x 2", "shop:2 x 2")
	w.settle("blue", 2)
	w.pass()
	w.sees("the way back", "blue", "shop:1 x 2", "shop:2 x 2")
	w.pass()
	w.sees("and done", "blue", "shop:1 x 2", "shop:2 x 0")
}

func TestATemplateThatIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.settle("blue", 2)
	w.image = "shop:broken"
	w.pass()
	w.settle("green", 0)
	w.image = "shop:3"
	w.pass()
	w.sees("its pods are there", "blue", "shop:1 x 2", "shop:broken x 0")
	w.pass()
	w.sees("its pods go", "blue", "shop:1 x 2", "shop:broken x 0")
	w.settle("green", 0)
	w.pass()
	w.sees("its pods are gone", "blue", "shop:1 x 2", "shop:3 x 2")
	w.settle("green", 1)
	w.image = "shop:1"
	w.pass()
	w.sees("what is live is wanted again", "blue", "shop:1 x 2", "shop:3 x 0")
}

func TestScaling(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.settle("blue", 2)
	w.replicas = 3
	w.pass()
	w.sees("more pods", "blue", "shop:1 x 3", "")
	w.settle("blue", 3)
	w.image = "shop:2"
	w.pass()
	w.settle("green", 3)
	w.replicas = 4
	w.pass()
	w.sees("more pods before the switch", "blue", "shop:1 x 4", "shop:2 x 4")
	w.settle("green", 3)
	w.pass()
	w.sees("one is missing", "blue", "shop:1 x 4", "shop:2 x 4")
	w.settle("green", 4)
	w.pass()
	w.sees("none is", "green", "shop:1 x 4", "shop:2 x 4")
}

func TestALostReplicaSet(t *testing.T) {
	w := newWorld(t)
	w.pass()
	delete(w.replicaSets, "shop-blue")
	w.pass()
	w.sees("it is made again", "blue", "shop:1 x 2", "")
	r, err := http.Post(w.url+"/sync", "application/json", strings.NewReader("{"))
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Errorf("%v, %v", r, err)
	}
}
