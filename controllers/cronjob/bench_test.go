package cronjob

import "testing"

// BenchmarkAtRest is what a pass decides each minute that nothing is due.
func BenchmarkAtRest(b *testing.B) {
	w := newWorld(b, "11:30:00").served("11:00:00").job("11:00:00", "Complete")
	for b.Loop() {
		if p := makePlan(w.f); !p.start.IsZero() {
			b.Fatal(p.start)
		}
	}
}
