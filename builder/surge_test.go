package builder

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
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
		"both budgets":                                  {Strategy{MaxSurge: 1, MaxUnavailable: 1}, "1 1 1", "+c1-2:2 -c0-1"},
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

// TestASurgeThatAdmissionAlters: an altered child beside an old child is its replacement. An altered child alone stays.
func TestASurgeThatAdmissionAlters(t *testing.T) {
	for places, want := range map[string]string{"1,9- 1 1": "", "1,9 1 1": "-c0-1", "9 1 1": "+c1-2:2", "9- 1 1": "+c1-2:2"} {
		f := picture(Strategy{MaxSurge: 1}, places)
		f.altered = func(child client.Object, _ string) bool { return child.GetName() == nameAt("c0", "9") }
		if got := makePlan(f).does(); got != want {
			t.Errorf("%s: %q, want %q", places, got, want)
		}
	}
}

func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}
