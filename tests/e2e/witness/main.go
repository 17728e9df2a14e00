// Command witness tells the end-to-end suites what Keystone, the KV store and the cluster say, without
// asking the operator: a test that believed the status it is testing would prove nothing. It needs
// nothing but Go's standard library, and never prints a secret.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `witness login [--user NAME]        log in with the delivered Secret on stdin (kubectl get secret -o json)
witness credentials USER_ID        application credentials of a user, one "id name" per line
witness roles USER_ID PROJECT_ID   names of the roles that are assigned directly
witness find users|projects NAME   ids of users or projects of that name in the domain Default
witness create-user NAME           make a user that no order knows, print its id
witness delete-user ID             delete it again
witness disable-user ID            disable a user, past its order
witness enable-user ID             enable it again
witness change-password ID         give a user a password that nobody knows, past its order
witness assign USER_ID PROJECT_ID ROLE_ID
witness unassign USER_ID PROJECT_ID ROLE_ID
                                   give a user a role on a project by hand, or take it away
witness revoke USER_ID ID          delete an application credential by hand
witness kv-same PATH KEY...        the store holds these keys of the Secret on stdin with their values
witness kv-absent PATH             the store holds nothing at or below the path
witness record --api SOCKET --out FOLDER [--namespaces PREFIX]
                                   write down every Secret's values, Event and status until interrupted
witness leaks --record FOLDER [FILE...]
                                   find recorded secrets in what was recorded and in the files
witness rights --account NAMESPACE/NAME --roles FILE [--since TIME] AUDIT_LOG...
                                   a ServiceAccount uses each of its rights, and needed no other; FILE is
                                   kubectl get roles,rolebindings,clusterroles,clusterrolebindings -A -o json

Keystone: OS_AUTH_URL, KEYSTONE_ADMIN_PASSWORD_FILE. Store: KV_ADDRESS, KV_TOKEN_FILE, KV_MOUNT (kv).
Exit status: 0 yes, 2 wrong use, 3 the answer is no, 4 no usable answer.
`

// Exit statuses. A test needs to tell Keystone's "no" from no answer at all.
const (
	exitWrongUse = 2
	exitNo       = 3
	exitUnknown  = 4
)

// answerIn is how long Keystone or the store may take for one answer. It counts from the request, not from the start of
// the program: in a pipe that waits for kubectl to send the Secret, which on a busy machine may take as long.
const answerIn = 30 * time.Second

// errNo is the answer no.
var errNo = errors.New("no")

// errWrongUse is a command line that makes no sense.
var errWrongUse = errors.New("wrong use")

func main() { os.Exit(status()) }

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errWrongUse):
		fmt.Fprint(os.Stderr, usage)
		return exitWrongUse
	}
	fmt.Fprintln(os.Stderr, "witness:", err)
	if errors.Is(err, errNo) {
		return exitNo
	}
	return exitUnknown
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errWrongUse
	}
	command, arguments := arguments[0], arguments[1:]
	switch command {
	// These run as long as they need.
	case "record":
		return record(ctx, arguments)
	case "leaks":
		return leaks(arguments, os.Stdout)
	case "rights":
		return rights(arguments, os.Stdout)
	}
	argument := func(i int) string {
		if i < len(arguments) {
			return arguments[i]
		}
		return ""
	}
	switch {
	case command == "login":
		return loginCommand(ctx, arguments)
	case command == "credentials" && len(arguments) == 1:
		return printAll(applicationCredentials(ctx, argument(0)))
	case command == "roles" && len(arguments) == 2:
		return printAll(directRoles(ctx, argument(0), argument(1)))
	case command == "find" && len(arguments) == 2:
		return printAll(find(ctx, argument(0), argument(1)))
	case command == "create-user" && len(arguments) == 1:
		return createUser(ctx, argument(0))
	case command == "delete-user" && len(arguments) == 1:
		return deleteUser(ctx, argument(0))
	case command == "disable-user" && len(arguments) == 1:
		return enableUser(ctx, argument(0), false)
	case command == "enable-user" && len(arguments) == 1:
		return enableUser(ctx, argument(0), true)
	case command == "change-password" && len(arguments) == 1:
		return changePassword(ctx, argument(0))
	case command == "assign" && len(arguments) == 3:
		return changeRole(ctx, http.MethodPut, argument(0), argument(1), argument(2))
	case command == "unassign" && len(arguments) == 3:
		return changeRole(ctx, http.MethodDelete, argument(0), argument(1), argument(2))
	case command == "revoke" && len(arguments) == 2:
		return revoke(ctx, argument(0), argument(1))
	case command == "kv-same" && len(arguments) > 1:
		secret, err := secretOnStdin()
		if err != nil {
			return err
		}
		return kvSame(ctx, argument(0), secret, arguments[1:]...)
	case command == "kv-absent" && len(arguments) == 1:
		return kvAbsent(ctx, argument(0))
	}
	return errWrongUse
}

// printAll prints lines. None is an answer too, and no failure.
func printAll(lines []string, err error) error {
	for _, line := range lines {
		fmt.Println(line)
	}
	return err
}

// secretObject is a Secret as the API server serves it.
type secretObject struct {
	Metadata struct{ Name, Namespace string } `json:"metadata"`
	// Data is decoded from base64 by the JSON decoder.
	Data map[string][]byte `json:"data"`
}

func secretOnStdin() (secretObject, error) {
	var secret secretObject
	if err := json.NewDecoder(os.Stdin).Decode(&secret); err != nil {
		// The decoder's own words quote what it read.
		return secret, errors.New("stdin is not a Secret in JSON")
	}
	return secret, nil
}
