package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// token is what Keystone's Fernet tokens look like. No Secret holds one, so they can't be recorded.
var token = regexp.MustCompile(`gAAAA[A-Za-z0-9_-]{60,}`)

// leaks looks for every recorded secret in everything recorded and in the files.
func leaks(arguments []string, w io.Writer) error {
	flags := flag.NewFlagSet("leaks", flag.ContinueOnError)
	folder := flags.String("record", "", "")
	if err := flags.Parse(arguments); err != nil || *folder == "" {
		return errWrongUse
	}
	values, err := readSecrets(filepath.Join(*folder, secretsFile))
	if err != nil {
		return err
	}
	// No secret means that the recorder did not work, and then nothing found means nothing.
	if len(values) == 0 {
		return errors.New("no secret was recorded: there is nothing to look for")
	}
	recorded, err := filepath.Glob(filepath.Join(*folder, "*.jsonl"))
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(append(recorded, flags.Args()...), func(f string) bool { return filepath.Base(f) == secretsFile })
	var total int64
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		total += int64(len(text))
		for _, place := range search(text, values) {
			found++
			fmt.Fprintf(w, "LEAK %s line %d: %s\n", file, place.line, place.what)
		}
	}
	fmt.Fprintf(w, "%d secret values looked for in %d files of %d KiB: %d found\n", len(values), len(files), total>>10, found)
	if found > 0 {
		return fmt.Errorf("%w: secrets were written where everybody can read them", errNo)
	}
	return nil
}

func readSecrets(file string) ([]secretValue, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var values []secretValue
	decoder := json.NewDecoder(bufio.NewReader(in))
	for {
		var value secretValue
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, fmt.Errorf("%s is damaged", file)
		}
		values = append(values, value)
	}
}

// leak says where something was found. It names the Secret and never the value.
type leak struct {
	line int
	what string
}

// search finds values in the spellings in which a program would write them: as they are, in base64 (a
// whole Secret printed), and escaped for a URL or a form.
func search(text []byte, values []secretValue) []leak {
	var found []leak
	add := func(at int, what string) {
		found = append(found, leak{line: 1 + bytes.Count(text[:at], []byte{'\n'}), what: what})
	}
	for _, secret := range values {
		spellings := []string{secret.Value, base64.StdEncoding.EncodeToString([]byte(secret.Value)), url.QueryEscape(secret.Value)}
		for _, spelling := range spellings {
			if at := bytes.Index(text, []byte(spelling)); at >= 0 {
				add(at, secret.Where)
				break
			}
		}
	}
	if at := token.FindIndex(text); at != nil {
		add(at[0], "a Keystone token")
	}
	return found
}
