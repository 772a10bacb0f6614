package builder

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// This file is plans with surge: two children of one place, whose names have the hash of their revision.

func TestPlanOfSurge(t *testing.T) {
	one, both := Strategy{MaxSurge: 1}, Strategy{MaxSurge: 1, MaxUnavailable: 1}
	for name, c := range map[string]struct {
		strategy Strategy
		places   string
		want     string
	}{
		"nothing is there":                              {one, ". .", "+c0-2:2 +c1-2:2"},
		"a new child comes first":                       {one, "1 1 1", "+c0-2:2"},
		"it is waited for":                              {one, "1,2- 1 1", ""},
		"the old one goes once it is available":         {one, "1,2 1 1", "-c0-1"},
		"not once it is ready":                          {one, "1,2~ 1 1", ""},
		"one that is terminating takes no surge":        {one, "2,1x 1 1", "+c1-2:2"},
		"two at a time":                                 {Strategy{MaxSurge: 2}, "1 1 1", "+c0-2:2 +c1-2:2"},
		"both budgets":                                  {Strategy{MaxSurge: 1, MaxUnavailable: 1}, "1 1 1", "+c0-2:2 -c1-1"},
		"what both have taken":                          {Strategy{MaxSurge: 1, MaxUnavailable: 1}, "1,2- 1x 1", "+c1-2:2"},
		"also beside a surge":                           {both, "1,2- 1 1-", "-c2-1"},
		"what does not serve is replaced in its place":  {both, "1- 1 1", "-c0-1 +c1-2:2"},
		"or by surge, if none may be unavailable":       {one, "1- 1 1", "+c0-2:2"},
		"it is not waited for":                          {one, "1-,2- 1 1", "-c0-1"},
		"one after the other":                           {both, "1- 1- 1-", "-c0-1"},
		"one after the other by surge":                  {one, "1- 1- 1-", "+c0-2:2"},
		"the next one once the first works":             {one, "2- 1- 1-", ""},
		"what is ready is not taken away":               {one, "1~ 1 1", "+c0-2:2"},
		"an old one that does not serve, and a new one": {one, "1-,2- 1", "-c0-1"},
		"an old one has failed, and a new one":          {one, "1!,2- 1", "-c0-1"},
		"a new one has failed":                          {one, "1,2! 1", "-c0-2"},
		"it stays as long as its back-off":              {one, "1,2? 1", ""},
		"its failure is deleted before it is replaced":  {one, "1,2!", "-c0-2"},
		"its name is not free yet":                      {one, "1,2x 1", "+c1-2:2"},

		"edited in mid-surge: the half-way child goes first": {one, "1,3- 1", "-c0-3"},
		"also if it serves":      {one, "1,3 1", "-c0-3"},
		"unless it alone does":   {one, "1-,3 1", "-c0-1"},
		"then the surge goes on": {one, "1,3x 1", "+c0-2:2"},
		"of three":               {one, "1,3,2- 1", "-c0-3"},
		"undone in mid-surge: what is there comes back":            {one, "2,1- 2", "-c0-1"},
		"paused in mid-surge":                                      {Strategy{MaxSurge: 1, Paused: true}, "1,2 1,3- .", "+c2-1:1"},
		"two of one revision: the one with the lower name stays":   {one, "2,2' 2", "-c0-2b"},
		"or the one that serves":                                   {one, "2-,2' 2", "-c0-2"},
		"of an older one, too":                                     {one, "1,1' 1", "-c0-1b"},
		"no surge beside two":                                      {Strategy{MaxSurge: 2}, "1,1' 1,2-", "-c0-1b"},
		"a surge is finished after the strategy has none any more": {Strategy{}, "1,2 1", "-c0-1 -c1-1"},

		"a child that is lost comes back as it was":                {one, "2 1 .", "+c1-2:2 +c2-1:1"},
		"from what is new, if one may be unavailable":              {both, "2 1 .", "+c1-2:2 +c2-2:2"},
		"a child that is lost beside a surge comes back as it was": {one, "1,2- 1 .", "+c2-1:1"},
		"unless one may be unavailable":                            {both, "1,2- 1 .", "+c2-2:2"},
		"a second one comes back as it was":                        {both, "1,2- . .", "+c1-2:2 +c2-1:1"},
		"also beside one that has no other":                        {both, "2- 1 .", "+c1-2:2 +c2-1:1"},
		"which takes from the surge":                               {one, "2- 1 .", "+c2-1:1"},
		"with more of those than the budget":                       {one, "2- 2- 1 .", "+c3-1:1"},
		"a partition keeps the last ones":                          {Strategy{MaxSurge: 2, Partition: 2}, "1 1 1", "+c0-2:2"},
		"and brings them back as they were":                        {Strategy{MaxSurge: 1, Partition: 2}, "2 . 1", "+c1-1:1"},
		"a surge that has begun is finished there":                 {Strategy{MaxSurge: 1, Partition: 1}, "2 1,2", "-c1-1"},
		"OnDelete replaces nothing":                                {Strategy{MaxSurge: 1, OnDelete: true}, "1 1", ""},
		"ordered":                                                  {Strategy{MaxSurge: 2, Ordered: true}, "1,2- 1 1", ""},
		"what is terminating is replaced at once":                  {both, "1x 1 1", "+c0-2:2 +c1-2:2"},
		"once its name is free":                                    {both, "2x 1x 1", "+c1-2:2 +c2-2:2"},
		"without surge it is waited for":                           {Strategy{}, "2x, 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := makePlan(picture(c.strategy, c.places))
			if want := sorted(c.want); got.does() != want {
				t.Errorf("%s: %q, want %q", c.places, got.does(), want)
			}
		})
	}
}

// Of several that serve, that one stays from whose revision lost children come back.
func TestTheHalfWayChildGoesFirst(t *testing.T) {
	f := picture(Strategy{MaxSurge: 1}, "1,3 1")
	f.older = "3"
	if got := makePlan(f).does(); got != "-c0-1" {
		t.Errorf("%q", got)
	}
}

func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// surging is a small world with surge: places with children, as words of picture.
type surging struct {
	Strategy

	chance *rand.Rand
	places [][]string
	// broken says that children of revision 2 never become available.
	broken bool
}

func (w *surging) String() string {
	var out []string
	for _, children := range w.places {
		out = append(out, cmp.Or(strings.Join(children, ","), "."))
	}
	return strings.Join(out, " ")
}

// count counts the places with a child like that.
func (w *surging) count(like func(children []string) bool) (n int) {
	for _, children := range w.places {
		if like(children) {
			n++
		}
	}
	return n
}

func alive(children []string) []string {
	return slices.DeleteFunc(slices.Clone(children), func(c string) bool { return strings.HasSuffix(c, "x") })
}

func serves(children []string) bool {
	return slices.ContainsFunc(children, func(c string) bool { return len(c) == 1 })
}

// check says which promise the plan breaks in this world.
func (w *surging) check(p *plan) error {
	down, taken := w.count(func(c []string) bool { return !serves(c) }), 0
	for i, children := range w.places {
		rest := slices.Clone(children)
		for _, d := range p.deletes {
			if w.at(d.child.object.GetName()) == i {
				rest = slices.DeleteFunc(rest, func(c string) bool { return c[:1] == d.child.revision })
			}
		}
		if serves(children) && !serves(rest) {
			taken++
		}
	}
	if taken > 0 && down+taken > w.budget() {
		return fmt.Errorf("%d places are down, and it takes %d, with %d allowed", down, taken, w.budget())
	}
	return nil
}

// judge says which promise the world breaks after a plan was carried out.
func (w *surging) judge() error {
	if n := w.count(func(c []string) bool { return len(alive(c)) > 1 }); n > w.MaxSurge {
		return fmt.Errorf("%d places have two children", n)
	}
	if n := w.count(func(c []string) bool { return len(alive(c)) > 2 }); n > 0 {
		return fmt.Errorf("a place has three children")
	}
	bad := w.count(func(c []string) bool { return slices.Contains(c, "2-") })
	if most := w.MaxUnavailable + w.MaxSurge; w.broken && bad > most {
		return fmt.Errorf("a broken revision has spread to %d places, with %d allowed", bad, most)
	}
	return nil
}

func (w *surging) at(name string) (i int) {
	_, _ = fmt.Sscanf(name, "c%d", &i)
	return i
}

// do carries a plan out, and lets time pass.
func (w *surging) do(p *plan, losses bool) {
	for i, children := range w.places {
		var next []string
		for _, c := range children {
			switch {
			case strings.HasSuffix(c, "x") && w.chance.IntN(2) == 0:
				continue
			case c == "1-", c == "3-", c == "2-" && !w.broken:
				if w.chance.IntN(2) == 0 {
					c = c[:1]
				}
			}
			next = append(next, c)
		}
		w.places[i] = next
	}
	for _, c := range p.creates {
		i := w.at(c.object.GetName())
		w.places[i] = append(w.places[i], c.revision+"-")
	}
	for _, d := range p.deletes {
		i := w.at(d.child.object.GetName())
		for n, c := range w.places[i] {
			if c[:1] == d.child.revision {
				w.places[i][n] = d.child.revision + "x"
			}
		}
	}
	olds := w.count(func(children []string) bool {
		return slices.ContainsFunc(children, func(c string) bool { return strings.HasPrefix(c, "1") && !strings.HasSuffix(c, "x") })
	})
	// Without an old child nothing says what there was.
	if i := w.chance.IntN(len(w.places)); losses && w.chance.IntN(4) == 0 && olds > 1 && len(w.places[i]) > 0 {
		w.places[i] = slices.Delete(w.places[i], 0, 1)
	}
}

// edit makes another revision the one to roll to: what was, is half-way, or, undone, what was before is wanted again.
func (w *surging) edit(undo bool) {
	to := map[byte]string{'1': "1", '2': "3", '3': "3"}
	if undo {
		to = map[byte]string{'1': "2", '2': "3", '3': "3"}
		w.broken = false
	}
	for i, children := range w.places {
		for n, c := range children {
			w.places[i][n] = to[c[0]] + c[1:]
		}
		// The world knows one half-way revision: a place never has two children of it.
		slices.Sort(w.places[i])
		w.places[i] = slices.CompactFunc(w.places[i], func(a, b string) bool { return a[:1] == b[:1] })
	}
}

// A rollout with surge, beside children that are lost, start late and fail, and edits in the middle: both budgets are
// kept in every state, and it comes to its end if the revision works.
func TestSurgesInChance(t *testing.T) {
	for seed := range uint64(4000) {
		chance := rand.New(rand.NewPCG(seed, 2))
		w := &surging{chance: chance, broken: chance.IntN(3) == 0, places: make([][]string, 1+chance.IntN(6))}
		w.Strategy = Strategy{
			MaxUnavailable: chance.IntN(3), MaxSurge: 1 + chance.IntN(3), Ordered: chance.IntN(2) == 0, Partition: max(0, chance.IntN(6)-3),
		}
		for i := range w.places {
			w.places[i] = []string{"1"}
		}
		edits, calm := chance.IntN(3), 0
		for step := range 300 {
			if edits > 0 && step > 0 && step < 30 && chance.IntN(8) == 0 {
				edits--
				w.edit(edits == 0 && chance.IntN(2) == 0)
			}
			before := w.String()
			p := makePlan(picture(w.Strategy, before))
			err := w.check(p)
			w.do(p, step < 50)
			if err == nil {
				err = w.judge()
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: from %q by %q to %q: %v", seed, w.Strategy, before, p.does(), w, err)
			}
			if calm++; w.String() != before || p.does() != "" {
				calm = 0
			} else if calm > 10 && step > 50 {
				break
			}
		}
		if calm < 10 {
			t.Fatalf("seed %d, %+v: it does not end: %q", seed, w.Strategy, w)
		}
		for i, children := range w.places {
			if held := i >= len(w.places)-w.Partition; !w.broken && (len(children) != 1 || children[0] != "2" && !held) {
				t.Fatalf("seed %d, %+v: it ended with %q", seed, w.Strategy, w)
			}
		}
	}
}
