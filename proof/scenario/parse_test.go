package scenario

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) (*Script, error) {
	t.Helper()
	return Parse("bug.txt", strings.NewReader(text))
}

func TestParse(t *testing.T) {
	s, err := parse(t, `# Bug 1: it breaks.
#
# Always.

controllers daemonset statefulset
seed 7
only sandbox because time matters

nodes 3
create daemonset web image=app:1 maxUnavailable=1  # as in the report
# a comment
patch daemonset web {"spec": {"minReadySeconds": 3}}
edit daemonset web readyAfter="1s 5ms"

-- web.yaml --
kind: Pod
-- sandbox.history --
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{Line: 9, Verb: "nodes", Args: []string{"3"}},
		{Line: 10, Verb: "create", Args: []string{"daemonset", "web"}, Options: map[string]string{"image": "app:1", "maxUnavailable": "1"}},
		{Line: 12, Verb: "patch", Args: []string{"daemonset", "web", `{"spec": {"minReadySeconds": 3}}`}},
		{Line: 13, Verb: "edit", Args: []string{"daemonset", "web"}, Options: map[string]string{"readyAfter": "1s 5ms"}},
	}
	if !reflect.DeepEqual(s.Steps, want) {
		t.Errorf("the steps are\n%+v, want\n%+v", s.Steps, want)
	}
	if got := fmt.Sprintf("%v %d %s %s", s.Controllers, s.Seed, s.Only, s.Because); got != "[daemonset statefulset] 7 sandbox time matters" {
		t.Errorf("the headers are %s", got)
	}
	if s.Why != "Bug 1: it breaks.\n\nAlways." {
		t.Errorf("the reason is %q", s.Why)
	}
	if s.Files["web.yaml"] != "kind: Pod\n" || len(s.Files) != 2 {
		t.Errorf("the sections are %q", s.Files)
	}
}

// A person who writes a bug report sees where it is wrong, and what was expected.
func TestParseErrorsSayWhereAndWhat(t *testing.T) {
	for line, want := range map[string]string{
		"explode":                                `there is no verb "explode"; there are: allow, apply`,
		"nodes":                                  "how many is missing, or no number; expected nodes NUMBER",
		"nodes many":                             "expected nodes NUMBER",
		"nodes 3 4":                              `"4" is too much; expected nodes NUMBER`,
		"create demonset web":                    `"demonset" is no kind; there are: daemonset, statefulset`,
		"create pod web":                         "cannot be created this way",
		"create daemonset":                       "a name is missing; expected create KIND NAME",
		"create daemonset web color=3":           "a daemonset has no option color; there are: historyLimit, image",
		"edit daemonset web":                     "there is nothing to edit",
		"patch daemonset web {":                  "is no JSON",
		"apply web.yaml":                         "the script has no section -- web.yaml --",
		"apply bad.yaml":                         "a manifest needs apiVersion, kind and metadata.name",
		"scale statefulset web 3":                `the word "to" is missing`,
		"create {\"kind\":\"Pod\"}":              "a manifest needs apiVersion, kind and metadata.name",
		"plant pod x of daemonset web number=x":  "number=x is no number",
		"delete pod of web on":                   "the name of a node is missing",
		"pod of web on node-1 sleepy":            `"sleepy" is no state of a pod`,
		"kill manager 3":                         "there are managers 1 to 2",
		"lose sight of create pod":               "what is lost is missing",
		"lose response of watch pod":             `"watch" is no verb of requests; there are: create, update, patch, delete, *`,
		"crash create pod":                       "before or after is missing",
		"lose request of create pod unseen=true": "unseen is for a response that is lost",
		"forbid create pod status=200":           "status=200 is no refusal",
		"hold pods times=3":                      "hold takes no option times",
		"rewind pods past":                       `the word "to" is missing`,
		"expect pod web-0 imgae=app:1":           "a pod has no field imgae; there are: image, node",
		"expect revisions of web newest=app:1":   "newest is no number of a revision",
		"plant node x of daemonset web":          "a node cannot be planted",
		"plant revision x of daemonset web":      "needs revision=, which it copies, and number=",
		"plant pod x of daemonset web owner=me":  "owner=me is neither none nor KIND/NAME",
		`edit daemonset web image="app`:          "a quoted word does not end",
		"edit daemonset web image=a image=b":     "the option image is listed twice",
		"seed seven":                             "expected seed NUMBER",
		"only sandbox":                           "expected only STAGE because REASON",
	} {
		_, err := parse(t, "controllers daemonset\n"+line+"\n-- bad.yaml --\nkind: Pod\n")
		if err == nil {
			t.Errorf("%s: no error", line)
			continue
		}
		if !strings.HasPrefix(err.Error(), "bug.txt:2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is\n\t%v\nand does not say\n\t%s", line, err, want)
		}
	}
}

func TestParseReportsEveryWrongLine(t *testing.T) {
	_, err := parse(t, "nodes\nsettle\nseed 3\nfoo\n")
	want := []string{"bug.txt:1: ", "bug.txt:3: seed has to come before", "bug.txt:4: "}
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != len(want) {
		t.Fatalf("it reports %q", lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("error %d is %s, want %s", i, lines[i], want[i])
		}
	}
}

// pieces are what random words are made of: everything that means something to the parser is among it.
var pieces = []string{"a", "web-0", "=", `"`, "#", "{", "}", " ", "\t", "\n", "\\", "é", "\x00", "\xff", "[0]", ".", "/", "-", "--", "\u65e5", "app:1"}

func randomWord(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// What a step prints is what Parse reads: the simulation's random programs are saved as scripts.
func TestStringIsWhatParseReads(t *testing.T) {
	keys := []string{"image", "spec.template.spec.containers[0].image", "metadata.labels[a.b/c]", "3", "a-b_c"}
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		step := Step{Verb: "verb"}
		for range r.IntN(4) {
			step.Args = append(step.Args, randomWord(r))
		}
		for range r.IntN(3) {
			if step.Options == nil {
				step.Options = map[string]string{}
			}
			step.Options[keys[r.IntN(len(keys))]] = randomWord(r)
		}
		words, err := split(step.String())
		if err != nil {
			t.Fatalf("seed %d: %q is printed as %s: %v", seed, step, step, err)
		}
		back, err := toStep(words)
		if err != nil || !reflect.DeepEqual(back, step) {
			t.Fatalf("seed %d: %#v is printed as\n%s\nand read as\n%#v, %v", seed, step, step, back, err)
		}
	}
}

// Every script of the house survives being printed and read again.
func TestFormatIsWhatParseReads(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(t, string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := parse(t, string(s.Format()))
		if err != nil {
			t.Errorf("%s: %v in\n%s", name, err, s.Format())
			continue
		}
		for _, x := range []*Script{s, again} {
			for i := range x.Steps {
				x.Steps[i].Line = 0
			}
		}
		if !reflect.DeepEqual(s, again) {
			t.Errorf("%s: printed and read again it is\n%s", name, again.Format())
		}
		if s.Why == "" || len(s.Controllers) == 0 {
			t.Errorf("%s does not say why it is there, or for which controllers", name)
		}
	}
}
