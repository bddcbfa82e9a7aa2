package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of a Service Bus sink.
type Options struct {
	// Namespace is the namespace's host, NAME.servicebus.windows.net, where credentials are those of
	// Microsoft's identities: AZURE_CLIENT_ID and its like, a pod's workload identity, a managed identity, the
	// Azure CLI's (that of ConnectionString).
	Namespace string `yaml:"namespace"`
	// ConnectionString is what the portal shows of a shared access policy that may send; a credential. It
	// takes the place of Namespace.
	ConnectionString string `yaml:"connectionString"`
	// Entity is the name of the queue or topic (EntityPath in ConnectionString).
	Entity string `yaml:"entity"`
	// Sessions gives each message the object's UID as its session id, so that a consumer with sessions sees
	// each object's changes in order; a queue that requires sessions takes nothing without (false).
	Sessions bool `yaml:"sessions"`
	// Parallel is how many sessions are sent to at a time (16, at most 64); nothing where there are none.
	Parallel int `yaml:"parallel"`
	// Timeout bounds one batch, its acknowledgement and the connection for it included (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// TLS says whom to trust.
	TLS sink.TLS `yaml:"tls"`
}

const maxParallel = 64

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(\.[A-Za-z0-9][A-Za-z0-9-]*)+$`)
	entityName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?$`)
)

// Validate says what is wrong with the options, naming the key and showing no credential; it talks to
// nobody.
func (o Options) Validate() error {
	c, err := connection(o.ConnectionString)
	switch {
	case err != nil:
		return fmt.Errorf("connectionString: %w", err)
	case o.Namespace == "" && o.ConnectionString == "":
		return errors.New("namespace: the sink needs one, such as shop.servicebus.windows.net, or a connectionString")
	case o.Namespace != "" && o.ConnectionString != "":
		return errors.New("namespace: the connectionString has one already")
	case o.Namespace != "" && !hostName.MatchString(o.Namespace):
		return fmt.Errorf("namespace: %q is no host, such as shop.servicebus.windows.net", o.Namespace)
	case o.Entity != "" && c["entitypath"] != "" && o.Entity != c["entitypath"]:
		return errors.New("entity: the connectionString is for another: see its EntityPath")
	case o.entity() == "":
		return errors.New("entity: the sink needs the name of a queue or a topic")
	case !entityName.MatchString(o.entity()):
		return fmt.Errorf("entity: %q is no name of a queue or a topic", o.entity())
	case o.Parallel < 0 || o.Parallel > maxParallel:
		return fmt.Errorf("parallel: from 1 to %d", maxParallel)
	case o.Timeout < 0:
		return errors.New("timeout: not negative")
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Parallel = cmp.Or(o.Parallel, 16)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

// entity is the name of the queue or topic, wherever it stands.
func (o Options) entity() string {
	c, _ := connection(o.ConnectionString) // Validate has told
	return cmp.Or(o.Entity, c["entitypath"])
}

// host is the namespace's.
func (o Options) host() string {
	c, _ := connection(o.ConnectionString) // Validate has told
	u, err := url.Parse(c["endpoint"])
	if err != nil {
		return o.Namespace
	}
	return cmp.Or(o.Namespace, u.Host)
}

// connection reads a connection string: its parts by name, in small letters. No error shows any of it.
func connection(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ";") {
		if part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		if !found {
			return nil, errors.New("not KEY=VALUE;… as the portal shows it")
		}
		parts[strings.ToLower(key)] = value
	}
	u, err := url.Parse(parts["endpoint"])
	switch {
	case err != nil || u.Scheme != "sb" || u.Host == "":
		return nil, errors.New("its Endpoint is not sb:// and a host")
	case parts["sharedaccesssignature"] == "" && (parts["sharedaccesskeyname"] == "" || parts["sharedaccesskey"] == ""):
		return nil, errors.New("has neither SharedAccessKeyName and SharedAccessKey nor a SharedAccessSignature")
	}
	return parts, nil
}

// FromURL reads an address such as azureservicebus://shop.servicebus.windows.net/changes. A shared access
// policy's name and key may stand before the host as user and password, and sessions=true in the query.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" { // its text quotes what may be a part of a key
		return nil, errors.New("want azureservicebus://NAMESPACE.servicebus.windows.net/QUEUE")
	}
	o := &Options{Entity: strings.Trim(u.Path, "/")}
	for key, values := range u.Query() {
		if key != "sessions" || len(values) != 1 {
			return nil, errors.New("in the query there may be sessions once, and nothing else")
		}
		if o.Sessions, err = strconv.ParseBool(values[0]); err != nil {
			return nil, errors.New("sessions: true or false")
		}
	}
	key, ok := u.User.Password()
	switch {
	case u.User == nil:
		o.Namespace = u.Host
	case !ok || u.User.Username() == "":
		return nil, errors.New("before the host there may be a policy's name and its key: NAME:KEY@")
	default:
		o.ConnectionString = fmt.Sprintf("Endpoint=sb://%s/;SharedAccessKeyName=%s;SharedAccessKey=%s", u.Host, u.User.Username(), key)
	}
	return o, nil
}
