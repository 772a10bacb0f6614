package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// This file replays the session of docs/tour.md, with the binaries that make builds, so that it cannot go stale.

// step is one command of the transcript and the output that the tour shows.
type step struct {
	line    int
	command string
	output  []string
}

func TestTheTourIsReal(t *testing.T) {
	beside(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	steps := transcript(t, filepath.Join(root, "docs", "tour.md"))
	if len(steps) < 5 {
		t.Fatalf("the tour shows %d commands, want a whole session", len(steps))
	}
	binaries(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	stop := startBinary(t, root, "--kubeconfig="+kubeconfig)
	for _, s := range steps {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", s.command)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "COLUMNS=120")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("docs/tour.md:%d: %s: %v\n%s", s.line, s.command, err, out)
		}
		if why := s.differs(string(out)); why != "" {
			t.Fatalf("docs/tour.md:%d: $ %s\n%s\nThe tour says:\n%s\nIt printed:\n%s", s.line, s.command, why, strings.Join(s.output, "\n"), out)
		}
	}
	stop()
}

// transcript returns the steps of a page's console blocks: lines that begin with "$ " and what follows them.
func transcript(t *testing.T, path string) []step {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	inside := false
	for i, line := range strings.Split(string(b), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case isCommand:
			steps = append(steps, step{line: i + 1, command: command})
		case len(steps) > 0:
			steps[len(steps)-1].output = append(steps[len(steps)-1].output, line)
		}
	}
	return steps
}

// differs says where the output is not what the page shows. A line "…" stands for any lines, "…" in a line for any
// text, and an age for any age; blanks at the end of lines and empty lines do not count.
func (s step) differs(out string) string {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range s.output {
		switch line = normal(line); line {
		case "":
		case "…":
			pattern.WriteString(`(?:.*\n)*?`)
		default:
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`)
		}
	}
	pattern.WriteString("$")
	var got strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		if line = normal(line); line != "" {
			got.WriteString(line + "\n")
		}
	}
	if regexp.MustCompile(pattern.String()).MatchString(got.String()) {
		return ""
	}
	return "does not match"
}

var (
	age    = regexp.MustCompile(`\b(\d+m)?\d+s\b`)
	blanks = regexp.MustCompile(` {2,}`)
)

func normal(line string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(age.ReplaceAllString(line, "AGE"), "  "))
}

func TestATourThatIsNotTrueIsFound(t *testing.T) {
	s := step{output: []string{"REVISION  AGE", "1         3s", "…", "done …"}}
	if why := s.differs("REVISION   AGE  \n1          1m12s\nanything\n\ndone with it\n"); why != "" {
		t.Errorf("a true one: %s", why)
	}
	for _, out := range []string{"", "REVISION  AGE\n2  3s\ndone\n", "REVISION  AGE\n1  3s\nmore\n", "extra\nREVISION  AGE\n1  3s\ndone x\n"} {
		if s.differs(out) == "" {
			t.Errorf("%q passes", out)
		}
	}
}

// built builds what a newcomer builds, once. It does nothing if make did so already.
var built = sync.OnceValue(func() error {
	cmd := exec.Command("make", "-s", "build")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	return nil
})

func binaries(t *testing.T) {
	t.Helper()
	must(t, built())
}

// startBinary starts bin/cairn-sandbox and waits until it says that it is ready. The returned function sends SIGTERM
// and fails the test if the process does not end well within 5 s.
func startBinary(t *testing.T, root string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "cairn-sandbox"), args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := end(cmd, 20*time.Second); err != nil {
			t.Errorf("%s: %v\n%s", cmd.Path, err, stderr.String())
		}
	}
	t.Cleanup(stop)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.HasSuffix(lines.Text(), "  ready") {
			go func() { // so that it never blocks on a full pipe
				for lines.Scan() {
				}
			}()
			return stop
		}
	}
	t.Fatalf("%s ended before it was ready: %s", cmd.Path, stderr.String())
	return nil
}

// end sends SIGTERM to a process and waits for it to end by itself with status 0.
func end(cmd *exec.Cmd, within time.Duration) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !kill() {
		return errors.Join(fmt.Errorf("did not end within %s of SIGTERM", within), err)
	}
	return err
}
