package sim

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file replays the seeds that once found something. Each is a file of testdata/seeds: comments that say why it is
// kept, its world, unless that is the first one, its trouble, if it has one, its seed, what its trace shows, in that
// order, and the hash of the trace. After a change that alters what controllers do, -sim.update writes the hashes anew;
// a seed that then no longer shows what it is kept for has to be replaced by one that does.

var (
	oneSeed   = flag.Int64("sim.seed", -1, "run this seed only, and print its trace")
	firstSeed = flag.Uint64("sim.first", 0, "the first of the seeds to run")
	seedCount = flag.Uint64("sim.seeds", 0, "how many seeds to run")
	update    = flag.Bool("sim.update", false, "write the hashes of the kept seeds anew")
)

// kept is one file.
type kept struct {
	why     []string
	world   string
	trouble string
	seed    uint64
	shows   []string
	hash    string
}

func TestKeptSeeds(t *testing.T) {
	names, err := filepath.Glob("testdata/seeds/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no seeds are kept: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			k := readKept(t, name)
			r := Run(t, k.seed, Options{Kinds: k.kinds(t), Trouble: k.trouble, Trace: true})
			if len(r.Violations) > 0 {
				t.Error(r)
			}
			k.check(t, r.Trace)
			sum := sha256.Sum256([]byte(r.Trace))
			hash := hex.EncodeToString(sum[:])
			if hash == k.hash {
				return
			}
			if !*update {
				t.Errorf("its history is another one than before: %s; if that is meant, run go test ./sim -run '^TestKeptSeeds$' -sim.update", hash)
				return
			}
			k.hash = hash
			if err := os.WriteFile(name, []byte(k.String()), 0o600); err != nil {
				t.Error(err)
			}
		})
	}
}

// kinds are those of its world.
func (k kept) kinds(t *testing.T) []Kind {
	t.Helper()
	all := Worlds()
	i := slices.IndexFunc(all, func(w World) bool { return w.Name == cmp.Or(k.world, all[0].Name) })
	if i < 0 {
		t.Fatalf("there is no world %q", k.world)
	}
	return all[i].Kinds
}

// check looks for what the seed is kept for, each after the one before.
func (k kept) check(t *testing.T, trace string) {
	t.Helper()
	for _, what := range k.shows {
		_, after, found := strings.Cut(trace, what)
		if !found {
			t.Errorf("it does not show this, or not in this order: %q", what)
			return
		}
		trace = after
	}
}

func (k kept) String() string {
	var shows strings.Builder
	for _, what := range k.shows {
		fmt.Fprintf(&shows, "shows %s\n", what)
	}
	world := ""
	if k.world != "" {
		world = "world " + k.world + "\n"
	}
	if k.trouble != "" {
		world += "trouble " + k.trouble + "\n"
	}
	return fmt.Sprintf("%s\n%sseed %d\n%strace %s\n", strings.Join(k.why, "\n"), world, k.seed, shows.String(), k.hash)
}

func readKept(t *testing.T, name string) kept {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var k kept
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "#":
			k.why = append(k.why, lines.Text())
		case "world":
			k.world = rest
		case "trouble":
			k.trouble = rest
		case "seed":
			if k.seed, err = strconv.ParseUint(rest, 10, 64); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		case "shows":
			k.shows = append(k.shows, rest)
		case "trace":
			k.hash = rest
		default:
			t.Fatalf("%s: nobody knows what %q means", name, lines.Text())
		}
	}
	if len(k.why) == 0 || len(k.shows) == 0 {
		t.Fatalf("%s does not say why it is kept, or what it shows", name)
	}
	return k
}

// firstDifference shows the first line in which two traces differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%s\n- %s\n+ %s", strings.Join(x[max(0, i-5):i], "\n"), x[i], y[i])
		}
	}
	return "one goes on where the other one ends"
}
