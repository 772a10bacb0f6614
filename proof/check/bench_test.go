package check_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// BenchmarkCheck measures one history of the random rollouts; the figure that counts is ns/write.
func BenchmarkCheck(b *testing.B) {
	w := newWorld(b)
	rollouts(w, rand.New(rand.NewPCG(7, 1)), 20, nil)
	h := w.history()
	b.ReportAllocs()
	for b.Loop() {
		if got := check.Check(h, parents.DaemonSet()); len(got) != 0 {
			b.Fatal(story(got))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(h.Events)), "ns/write")
	b.ReportMetric(float64(len(h.Events)), "writes")
}
