package rotation

import (
	"flag"
	"os"
	"testing"
)

// TestMain raises rapid's defaults: the interesting histories need several accidents
// in a row. -rapid.checks and -rapid.steps on the command line still win.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "3000", "rapid.steps": "80"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
