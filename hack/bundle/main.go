// Command bundle does what operator-sdk leaves undone for the OLM bundle.
//
//	bundle complete -base CSV -icon SVG DIRECTORY   completes a bundle that operator-sdk generated
//	bundle findings -explained FILE                 judges what `operator-sdk bundle validate -o json-alpha1` printed
//	bundle check DIRECTORY                          holds a submission to OperatorHub against the rules of its pipeline
//
// It ends with 1, and the reasons on stderr, when something is wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New("complete, findings or check expected")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "complete":
		base := flags.String("base", "", "the ClusterServiceVersion that the bundle was generated from")
		icon := flags.String("icon", "", "the operator's icon, an SVG")
		created := flags.String("created", "", "metadata.annotations.createdAt; empty is the base's")
		replaces := flags.String("replaces", "", "name of the ClusterServiceVersion that this one replaces; empty is the base's")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return complete(flags.Arg(0), completion{base: *base, icon: *icon, created: *created, replaces: *replaces})
	case "findings":
		explained := flags.String("explained", "", "the warnings that are explained, and where")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return judge(stdin, stdout, *explained)
	case "check":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		findings, err := checkSubmission(os.DirFS(flags.Arg(0)))
		return errors.Join(append([]error{err}, findings...)...)
	}
	return fmt.Errorf("complete, findings or check expected, got %q", args[0])
}
