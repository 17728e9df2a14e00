// Command kv is a KV v2 secret store that speaks OpenBao's HTTP API, for tests.
//
// It keeps its data, its unseal key and its root token in one folder, so that it can be killed and
// started again with everything still there: that is what the fault tests do with it. It is no
// protection at all, since the key lies beside the data.
//
// See README.md for the licence of the server that it links.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/vault"
)

// builtins is the catalogue of plugins that the server knows: kv and nothing else. A nil catalogue
// makes the server panic when it mounts its default engines.
type builtins struct{}

func (builtins) Contains(name string, t consts.PluginType) bool {
	_, ok := builtins{}.Get(name, t)
	return ok
}

func (builtins) Get(name string, t consts.PluginType) (func() (any, error), bool) {
	if name == "kv" && t == consts.PluginTypeSecrets {
		return func() (any, error) { return logical.Factory(kv.Factory), nil }, true
	}
	return nil, false
}

func (builtins) Keys(t consts.PluginType) []string {
	if t == consts.PluginTypeSecrets {
		return []string{"kv"}
	}
	return nil
}

func (builtins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func (builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func main() {
	address := flag.String("address", "127.0.0.1:8200", "host:port to serve plain HTTP on")
	data := flag.String("data", "", "folder of the data, the unseal key and the root token (required)")
	flag.Parse()
	if *data == "" || flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "usage: kv --data FOLDER [--address HOST:PORT]")
		os.Exit(2)
	}
	if err := run(*address, *data); err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(1)
	}
}

func run(address, data string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info})
	physical, err := file.NewFileBackend(map[string]string{"path": filepath.Join(data, "storage")}, logger)
	if err != nil {
		return fmt.Errorf("opening the storage folder: %w", err)
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:        physical,
		DisableMlock:    true, // needs a capability that containers rarely have; the key is on disk anyway
		BuiltinRegistry: builtins{},
		LogicalBackends: map[string]logical.Factory{"kv": kv.Factory},
		Logger:          logger,
	})
	if err != nil {
		return fmt.Errorf("creating the server: %w", err)
	}
	if err := open(ctx, core, data); err != nil {
		return err
	}

	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		// An empty listener configuration, not nil: the handler reads its fields.
		Handler:           vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(grace)
	return core.Shutdown()
}

// open initialises the store on its first start and unseals it.
func open(ctx context.Context, core *vault.Core, data string) error {
	keyFile, tokenFile := filepath.Join(data, "unseal-key"), filepath.Join(data, "root-token")
	initialised, err := core.Initialized(ctx)
	if err != nil {
		return fmt.Errorf("looking for an initialised store: %w", err)
	}
	if !initialised {
		one := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
		result, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: one, RecoveryConfig: one})
		if err != nil {
			return fmt.Errorf("initialising the store: %w", err)
		}
		if err := writeSecret(keyFile, hex.EncodeToString(result.SecretShares[0])); err != nil {
			return err
		}
		if err := writeSecret(tokenFile, result.RootToken); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		// Killed between Initialize and writing the key: that store can never be opened again.
		return fmt.Errorf("the store in %s is initialised but its unseal key is missing: remove the folder", data)
	}
	if err != nil {
		return err
	}
	key, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("%s is not a hexadecimal key", keyFile)
	}
	unsealed, err := core.Unseal(key)
	if err != nil {
		return fmt.Errorf("unsealing the store: %w", err)
	}
	if !unsealed {
		return fmt.Errorf("the store in %s wants more than the one key that it was initialised with", data)
	}
	status, _ := json.Marshal(map[string]bool{"unsealed": true, "firstStart": !initialised})
	fmt.Println(string(status))
	return nil
}

// writeSecret writes a file that only its owner reads, complete or not at all: a kill in between
// must not leave an empty key behind.
func writeSecret(path, value string) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(value), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
