package env

import "testing"

// TestPaintDiff: lines have their colours, and what a terminal would obey is written out.
func TestPaintDiff(t *testing.T) {
	const diff = "--- a\n+++ b\n@@ -1 +1 @@\n same\n\n-red\x1b[2J\n+green"
	const want = "\x1b[31m--- a\x1b[0m\n\x1b[32m+++ b\x1b[0m\n\x1b[33m@@ -1 +1 @@\x1b[0m\n same\n\n\x1b[31m-red\\u001b[2J\x1b[0m\n\x1b[32m+green\x1b[0m\n"
	if got := string(PaintDiff([]byte(diff))); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}
