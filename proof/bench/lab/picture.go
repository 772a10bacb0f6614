package lab

// This file draws what a pod costs against how many there are: one panel for each phase that was measured with several
// loads, one line for each subject.

import (
	"fmt"
	"math"
	"strings"
)

const (
	panelWidth, panelHeight = 360.0, 220.0
	left, top, below        = 48.0, 40.0, 52.0
)

// inks are the colours of the subjects, in their order; they can be told apart in light and in dark.
var inks = []string{"#8a8f98", "#d9822b", "#2f80ed"}

// point is a load and what a pod of it costs, in ms of processor time.
type point struct{ pods, cost float64 }

// Picture returns an SVG, empty if no phase was measured with several loads.
func (t *Table) Picture() string {
	var phases []string
	of := map[string][]row{}
	for _, r := range t.rows {
		if of[r.Phase] = append(of[r.Phase], r); len(of[r.Phase]) == 2 {
			phases = append(phases, r.Phase)
		}
	}
	if len(phases) == 0 {
		return ""
	}
	var b strings.Builder
	width := float64(len(phases)) * panelWidth
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`+"\n",
		width, panelHeight+top+below)
	fmt.Fprintln(&b, `<style>text{fill:#59636e}.axis{stroke:#8a8f98;stroke-width:1}.line{fill:none;stroke-width:2}`+
		`@media (prefers-color-scheme:dark){text{fill:#c9d1d9}}</style>`)
	for i, phase := range phases {
		panel(&b, float64(i)*panelWidth, phase, of[phase])
	}
	for i, s := range of[phases[0]][0].Subjects {
		x := left + float64(i)*170
		fmt.Fprintf(&b, `<rect x="%.0f" y="8" width="12" height="12" fill="%s"/><text x="%.0f" y="18">%s</text>`+"\n",
			x, inks[i%len(inks)], x+18, s.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws one phase.
func panel(b *strings.Builder, x0 float64, phase string, rows []row) {
	lines := make([][]point, len(rows[0].Subjects))
	least, most, highest := math.Inf(1), 0.0, 0.0
	for _, r := range rows {
		pods := float64(r.Load.Pods())
		least, most = min(least, pods), max(most, pods)
		for i, s := range r.Subjects {
			cost := 1000 * median(s.Rounds, func(c Cost) float64 { return c.CPU.Seconds() }) / pods
			highest = max(highest, cost)
			lines[i] = append(lines[i], point{pods, cost})
		}
	}
	highest = math.Ceil(highest*2) / 2 // half milliseconds
	bottom := top + panelHeight
	at := func(p point) (float64, float64) { // the number of pods is drawn by its logarithm
		return x0 + left + (panelWidth-left-24)*math.Log(p.pods/least)/math.Log(most/least), bottom - panelHeight*p.cost/highest
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" font-weight="bold">%s: ms of CPU for each pod</text>`+"\n", x0+left, top-4, phase)
	fmt.Fprintf(b, `<path class="axis" fill="none" d="M%.0f %.0fV%.0fH%.0f"/>`+"\n", x0+left, top+4, bottom, x0+panelWidth-12)
	for n := 0.0; n <= highest; n += highest / 4 {
		_, y := at(point{least, n})
		fmt.Fprintf(b, `<text x="%.0f" y="%.1f" text-anchor="end">%.2f</text>`+"\n", x0+left-6, y+4, n)
	}
	for _, p := range lines[0] {
		x, _ := at(p)
		fmt.Fprintf(b, `<text x="%.1f" y="%.0f" text-anchor="middle">%.0f</text>`+"\n", x, bottom+16, p.pods)
	}
	for i, line := range lines {
		ink, path := inks[i%len(inks)], &strings.Builder{}
		for n, p := range line {
			x, y := at(p)
			fmt.Fprintf(path, "%c%.1f %.1f", "ML"[min(n, 1)], x, y)
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, ink)
		}
		fmt.Fprintf(b, `<path class="line" stroke="%s" d="%s"/>`+"\n", ink, path)
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="middle">pods</text>`+"\n", x0+panelWidth/2, bottom+34)
}
