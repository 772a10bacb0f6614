package builder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func named(name string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// picture reads places: a revision and what it is like, for instance "1" for available, "1~" for ready but not
// available yet, "2-" for not ready, "1x" for terminating, "1!" for failed, "1?" for failed and held by the back-off,
// "." for missing. places are in the order of the rollout, to revision 2. Several children of one place have commas
// between them: then children are named by revision.
func picture(s Strategy, text string) facts {
	f := facts{update: "2", strategy: s}
	named := s.MaxSurge > 0 || strings.Contains(text, ",")
	for i, word := range strings.Fields(text) {
		name := fmt.Sprint("c", i)
		p := place{name: name, key: name, named: named, update: childOf(name, "2", named)}
		if word == "." {
			word = ""
		}
		for _, word := range strings.FieldsFunc(word, func(r rune) bool { return r == ',' }) {
			c := &owned{object: childOf(name, word[:1], named), revision: word[:1], terminating: strings.HasSuffix(word, "x")}
			c.available = !strings.ContainsAny(word, "-~x!?")
			c.ready = c.available || strings.Contains(word, "~")
			c.failed = strings.ContainsAny(word, "!?")
			if strings.HasSuffix(word, "?") {
				c.pause = time.Minute
			}
			if len(word) > 1 && word[1] == '\'' { // another one of the same revision
				c.object.SetName(c.object.GetName() + "b")
			}
			p.children = append(p.children, c)
			if c.revision != "2" && !c.terminating && (f.older == "" || c.revision < f.older) {
				f.older = c.revision
			}
		}
		for _, c := range p.children {
			if c.terminating && named {
				p.takenBy(c.object, "it is terminating")
			}
		}
		f.places = append(f.places, p)
	}
	for i := range f.places {
		if f.older != "" {
			f.places[i].older = childOf(f.places[i].name, f.older, named)
		}
	}
	return f
}

func childOf(place, revision string, byRevision bool) client.Object {
	if byRevision {
		return named(nameAt(place, revision))
	}
	return named(place)
}

// does writes a plan: what is created from which revision, and what is deleted.
func (p *plan) does() string {
	var out []string
	for _, c := range p.Creates {
		out = append(out, "+"+c.object.GetName()+":"+c.revision)
	}
	for _, d := range p.Deletes {
		out = append(out, "-"+d.child.object.GetName())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		strategy Strategy
		places   string
		want     string
	}{
		"nothing is there":                          {Strategy{}, ". . .", "+c0:2 +c1:2 +c2:2"},
		"all are updated":                           {Strategy{}, "2 2 2", ""},
		"a rollout begins":                          {Strategy{}, "1 1 1", "-c0"},
		"it waits for a child that is terminating":  {Strategy{}, "1x 1 1", ""},
		"the place that it emptied":                 {Strategy{}, ". 1 1", "+c0:2"},
		"it waits for a child that starts":          {Strategy{}, "2- 1 1", ""},
		"it goes on":                                {Strategy{}, "2 1 1", "-c1"},
		"two at a time":                             {Strategy{MaxUnavailable: 2}, "1 1 1", "-c0 -c1"},
		"a child is lost behind a broken one":       {Strategy{}, "2- 1 .", "+c2:1"},
		"a child is lost where nothing is broken":   {Strategy{}, "2 1 .", "+c2:2"},
		"two are lost":                              {Strategy{}, "1 . .", "+c1:2 +c2:1"},
		"all that is left is broken":                {Strategy{}, "1- 1- 1-", "-c0"},
		"a broken rollout is repaired":              {Strategy{}, "3- 1 1", "-c0"},
		"a partition keeps the last ones":           {Strategy{Partition: 2}, "1 1 1", "-c0"},
		"and brings them back as they were":         {Strategy{Partition: 2}, "2 . 1", "+c1:1"},
		"OnDelete replaces nothing":                 {Strategy{OnDelete: true}, "1 1 1", ""},
		"but what somebody deleted":                 {Strategy{OnDelete: true}, "1 . 1", "+c1:2"},
		"a place is new, and nothing old works":     {Strategy{}, "1- 2 .", "+c2:2"},
		"a failed child is replaced":                {Strategy{}, "2 2! 2", "-c1"},
		"also one that the rollout has not reached": {Strategy{}, "2- 1! 1", "-c1"},
		"not before its back-off is over":           {Strategy{}, "2 2? 2", ""},
		"paused":                                    {Strategy{Paused: true}, "2 1 .", "+c2:1"},
		"ordered waits for the first":               {Strategy{Ordered: true, MaxUnavailable: 2}, "2- 1 1", "-c1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := makePlan(picture(c.strategy, c.places)).does(); got != c.want {
				t.Errorf("%s: %q, want %q", c.places, got, c.want)
			}
		})
	}
}

func TestPlanOfSurplus(t *testing.T) {
	f := picture(Strategy{}, "2 2")
	f.surplus = []owned{{object: named("c2"), revision: "2"}, {object: named("c3"), revision: "1", terminating: true}}
	if got := makePlan(f).does(); got != "-c2" {
		t.Errorf("%q", got)
	}
	f.update = "" // the revision could not be recorded: nothing is taken away by what was asked for before
	if got := makePlan(f).does(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestPlanWithoutRevision(t *testing.T) {
	f := picture(Strategy{}, "1 . 1")
	f.update = ""
	for i := range f.places {
		f.places[i].update = nil
	}
	if got := makePlan(f).does(); got != "+c1:1" {
		t.Errorf("%q", got)
	}
}

// TestARefusedChildStopsNoOther: the last write to the first child was refused, its deletion or the creation beside it.
func TestARefusedChildStopsNoOther(t *testing.T) {
	for refused, strategy := range map[string]Strategy{"c0": {}, nameAt("c0", "1"): {MaxSurge: 1}, nameAt("c0", "2"): {MaxSurge: 1}} {
		f := picture(strategy, "1 1 1")
		f.failed = func(_ int, child client.Object) int {
			if child.GetName() == refused {
				return 1
			}
			return 0
		}
		want := "-c1"
		if strategy.MaxSurge > 0 {
			want = "+" + nameAt("c1", "2") + ":2"
		}
		if got := makePlan(f).does(); got != want {
			t.Errorf("%s was refused: %s, want %s", refused, got, want)
		}
	}
}
