package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// This file follows docs/library.md as a newcomer does, in a shell and from an empty folder: it writes the files that
// the page shows, runs its commands, and compares what they print.

// act is one thing to do: a file to write, or a command to run.
type act struct {
	step

	file, text string
}

func TestTheGuideIsReal(t *testing.T) {
	beside(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "library.md")
	acts := actsOf(t, page)
	if len(acts) < 20 {
		t.Fatalf("the guide has %d files and commands", len(acts))
	}
	binaries(t)
	generator(t, root, page)
	home := t.TempDir()
	if err := os.Symlink(root, filepath.Join(home, "cairn")); err != nil { // where the page has it
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	stop := startBinary(t, root, "--kubeconfig="+kubeconfig, sandboxFlag(t, page))
	sh := newShell(t, append(goFolders(t),
		"HOME="+home, "KUBECONFIG="+kubeconfig, "COLUMNS=120", "PATH="+filepath.Join(root, "bin", "tools")+":"+os.Getenv("PATH"))...)
	for _, a := range acts {
		if a.file != "" {
			sh.write(a.file, a.text)
			continue
		}
		out, ok := sh.run(a.command)
		ok = ok || strings.HasPrefix(a.command, "cairn status ") // in progress is an answer
		if why := a.differs(out); why != "" || !ok {
			t.Fatalf("%s:%d: $ %s\n%s\nThe page says:\n%s\nIt printed:\n%s", page, a.line, a.command, why, strings.Join(a.output, "\n"), out)
		}
	}
	stop()
}

// TestTheGuideEndsWithTheExample: what the page shows is what examples/ has.
func TestTheGuideEndsWithTheExample(t *testing.T) {
	shown := 0
	for _, a := range actsOf(t, "../../docs/library.md") {
		if a.file == "" {
			continue
		}
		shown++
		stored, err := os.ReadFile(filepath.Join(fleetDir, a.file))
		if err != nil || string(stored) != a.text {
			t.Errorf("%s is not that of the example: %v", a.file, err)
		}
	}
	if shown != 5 {
		t.Errorf("%d files are shown", shown)
	}
}

// listing is what stands before a file that the page shows.
var listing = regexp.MustCompile("^`([^`]+)`:$")

// actsOf reads a page: blocks after the name of a file, and console blocks.
func actsOf(t *testing.T, page string) []act {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var acts []act
	kind, file := "", ""
	for i, line := range strings.SplitAfter(string(text), "\n") {
		bare := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(bare, "```") && kind == "":
			if kind = bare[3:] + " "; file != "" {
				kind = "file"
				acts = append(acts, act{file: file})
			}
		case bare == "```":
			kind, file = "", ""
		case kind == "file":
			acts[len(acts)-1].text += line
		case kind == "console " && strings.HasPrefix(bare, "$ "):
			acts = append(acts, act{step: step{line: i + 1, command: bare[2:]}})
		case kind == "console ":
			acts[len(acts)-1].output = append(acts[len(acts)-1].output, bare)
		case kind == "" && bare != "":
			file = ""
			if found := listing.FindStringSubmatch(bare); found != nil {
				file = found[1]
			}
		}
	}
	return acts
}

// generator builds the controller-gen of tools.mod, which is the one that the page names.
func generator(t *testing.T, root, page string) {
	t.Helper()
	version := regexp.MustCompile(`sigs.k8s.io/controller-tools(?:/cmd/controller-gen@| )(v\S+)`)
	for _, file := range []string{page, filepath.Join(root, "tools.mod")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := version.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s names no controller-gen", file)
		}
		version = regexp.MustCompile(`sigs.k8s.io/controller-tools (` + regexp.QuoteMeta(string(found[1])) + `)`)
	}
	build := exec.CommandContext(t.Context(), "make", "-s", "bin/tools/controller-gen")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// goFolders are where Go keeps what it has downloaded and built, which follow from HOME.
func goFolders(t *testing.T) (env []string) {
	t.Helper()
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE"} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}

// sandboxFlag is how the page has the sandbox started.
func sandboxFlag(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^make sandbox ARGS="(\S+)"$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the page starts no sandbox")
	}
	return string(found[1])
}

// shell is one bash, in an empty folder.
type shell struct {
	*testing.T

	in  io.Writer
	out *bufio.Reader
	dir string
}

func newShell(t *testing.T, env ...string) *shell {
	t.Helper()
	s := &shell{T: t, dir: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Dir, cmd.Env = s.dir, append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod"), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and what it runs
		_ = cmd.Wait()
	})
	return s
}

// ended is what bash says of a background job that was killed. In a terminal it stands beside the prompt.
var ended = regexp.MustCompile(`^bash: line \d+: +\d+ (Killed|Terminated) `)

// run runs a command and returns what it printed, and whether it ended well.
func (s *shell) run(command string) (out string, ok bool) {
	s.Helper()
	const end = "__the end of the command__"
	_, err := fmt.Fprintf(s.in, "%s\necho \"%s $? $PWD\"\n", command, end)
	if err != nil {
		s.Fatal(err)
	}
	var lines strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.Fatalf("$ %s\n%s\nthe shell ended: %v", command, lines.String(), err)
		}
		if result, is := strings.CutPrefix(line, end); is {
			code, dir, _ := strings.Cut(strings.TrimSpace(result), " ")
			s.dir = dir
			return lines.String(), code == "0"
		}
		if !ended.MatchString(line) {
			lines.WriteString(line)
		}
	}
}

// write writes a file as an editor would, in the folder where the shell is.
func (s *shell) write(file, text string) {
	s.Helper()
	must(s, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600))
}
