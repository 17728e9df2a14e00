package main

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/command"
)

// options are the command line.
type options struct {
	command.Options

	pageAddress string
	tlsCert     string
	tlsKey      string
	config      string
	linkKey     string
}

// parse reads the command line. Help and complaints go to output.
func parse(arguments []string, output io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("c5c3-cards", flag.ContinueOnError)
	flags.SetOutput(output)
	o.Register(flags)

	flags.StringVar(&o.config, "config", "/etc/c5c3-cards/config/config.yaml", "file with the channels of cards, the page's address and the ways to log in; read when the process starts")
	flags.StringVar(&o.linkKey, "link-key-file", "/etc/c5c3-cards/link-key/key", "file with the key that links are signed with: at least 32 random bytes, in base64")
	flags.StringVar(&o.pageAddress, "page-bind-address", ":8443", "address the page is served on, over HTTPS with --tls-cert-file, else over plain HTTP for an ingress that ends TLS")
	flags.StringVar(&o.tlsCert, "tls-cert-file", "", "file with the page's certificate and its chain, in PEM; a change of it is followed")
	flags.StringVar(&o.tlsKey, "tls-key-file", "", "file with that certificate's key")

	err := flags.Parse(arguments)
	if err == nil {
		err = o.check(flags.Args())
	}
	return o, err
}

func (o *options) check(rest []string) error {
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return errors.New("--tls-cert-file and --tls-key-file belong together")
	}
	return o.Check(rest)
}

// readKey reads the key of links. It never makes one up: links would end with the process, and another replica
// would not know them.
func readKey(path string) (link.Key, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the path is an option
	if err != nil {
		return link.Key{}, fmt.Errorf("reading the link key: %w", err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(content)), ""))
	if err != nil {
		return link.Key{}, fmt.Errorf("the link key in %s is not base64", path) // the error would quote it
	}
	key, err := link.NewKey(secret)
	if err != nil {
		return link.Key{}, fmt.Errorf("the link key in %s: %w", path, err)
	}
	return key, nil
}
