package workload

// This file is many small parents, of three revisions each: what it costs to start on them, where nothing is to be
// done, and what one of them costs that is edited again and again without a change that matters.

import (
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// edits is how often one parent is edited.
const edits = 100

// BenchmarkStart starts each program on what there is, which looks at every parent and finds nothing to do.
func BenchmarkStart(b *testing.B) {
	loads := []lab.Load{{Parents: 100, Children: 1}}
	if os.Getenv("FULL") != "" {
		loads = append(loads, lab.Load{Parents: 2000, Children: 1})
	}
	for _, k := range kinds {
		if !k.simple() {
			continue
		}
		for _, load := range loads {
			b.Run(k.title()+"/"+load.String(), func(b *testing.B) {
				for b.Loop() {
					k.startOn(b, load)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// startOn makes the parents and their revisions, and starts upstream's program and cairn on them in turn.
func (k *workload) startOn(b *testing.B, load lab.Load) {
	b.Helper()
	c, maker := k.start(b, load, cairn)
	c.Create()
	c.Settled()
	for _, phase := range k.phases {
		if phase.name == rolled.name { // what does not roll has no revisions
			c.Edit()
			c.Settled()
			c.Edit()
			c.Settled()
		}
	}
	maker.Stop()
	started, edited := map[string]lab.Rounds{}, map[string]lab.Rounds{}
	pair := []subject{upstream, cairn}
	for round := range rounds {
		for i := range pair {
			s := pair[(round+i)%len(pair)]
			before, at := counted.Read(), time.Now()
			p := k.run(c, s)
			started[s.name] = append(started[s.name], lab.Cost{
				Tally: counted.Since(before), Wall: time.Since(at) - lab.Calm, CPU: p.CPU(), Moved: p.Moved(), Peak: p.Peak(),
			})
			edited[s.name] = append(edited[s.name], c.Measure(p, func() { touch(c) }))
			b.Logf("%s, %s, round %d: started: %s; edited: %s", k.title(), s.name, round+1,
				started[s.name][round].Tally, edited[s.name][round].Tally)
			p.Stop()
		}
	}
	for _, m := range []struct {
		what  string
		costs map[string]lab.Rounds
	}{{"started on", started}, {fmt.Sprint(edits, " edits of one of"), edited}} {
		printed.Add(k.title()+" "+m.what, load, lab.Measured{Name: upstream.name, Rounds: m.costs[upstream.name]},
			lab.Measured{Name: cairn.name, Rounds: m.costs[cairn.name]})
	}
}

// touch edits an annotation of one parent.
func touch(c *lab.Cluster) {
	c.Helper()
	for n := range edits {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, n)
		if _, err := c.Parents().Patch(c.Context(), "p0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}
