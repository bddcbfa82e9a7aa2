package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a Service Bus sink.
type Options struct {
	// Namespace is the namespace's host, NAME.servicebus.windows.net. Credentials are then those of a Microsoft
	// identity: AZURE_CLIENT_ID and related variables, a pod's workload identity, a managed identity, or the Azure
	// CLI's. Default: the namespace in ConnectionString.
	Namespace string `yaml:"namespace"`
	// ConnectionString is the connection string of a shared access policy with the right to send, as the portal shows
	// it. It is a credential. It replaces the key namespace.
	ConnectionString string `yaml:"connectionString"`
	// Entity is the name of the queue or topic. Default: EntityPath in ConnectionString.
	Entity string `yaml:"entity"`
	// Sessions sets the object's UID as the session id of each message, so that a consumer with sessions sees each
	// object's changes in order. A queue that requires sessions refuses messages without a session id.
	Sessions bool `yaml:"sessions"`
	// Parallel is the number of sessions to send to concurrently, at most 64. This key has no effect without sessions.
	// Default: 16.
	Parallel int `yaml:"parallel"`
	// Timeout bounds one batch, including the connection for it and its acknowledgement. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// TLS configures which certificates to trust.
	TLS sink.TLS `yaml:"tls"`
}

const maxParallel = 64

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(\.[A-Za-z0-9][A-Za-z0-9-]*)+$`)
	entityName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?$`)
)

// Validate returns an error that names the wrong key and shows no credential. It does not connect.
func (o Options) Validate() error {
	c, err := connection(o.ConnectionString)
	switch {
	case err != nil:
		return fmt.Errorf("connectionString: %w", err)
	case o.Namespace == "" && o.ConnectionString == "":
		return errors.New("namespace: missing; set it, such as shop.servicebus.windows.net, or connectionString")
	case o.Namespace != "" && o.ConnectionString != "":
		return errors.New("namespace: the connectionString already contains one")
	case o.Namespace != "" && !hostName.MatchString(o.Namespace):
		return fmt.Errorf("namespace: %q is not a host, such as shop.servicebus.windows.net", o.Namespace)
	case o.Entity != "" && c["entitypath"] != "" && o.Entity != c["entitypath"]:
		return errors.New("entity: the connectionString is for another one: see its EntityPath")
	case o.entity() == "":
		return errors.New("entity: missing; name a queue or a topic")
	case !entityName.MatchString(o.entity()):
		return fmt.Errorf("entity: %q is not a valid name of a queue or a topic", o.entity())
	case o.Parallel < 0 || o.Parallel > maxParallel:
		return fmt.Errorf("parallel: must be between 1 and %d", maxParallel)
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
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

// entity returns the name of the queue or topic.
func (o Options) entity() string {
	c, _ := connection(o.ConnectionString) // Validate returns the error
	return cmp.Or(o.Entity, c["entitypath"])
}

// host returns the namespace's host.
func (o Options) host() string {
	c, _ := connection(o.ConnectionString) // Validate returns the error
	u, err := url.Parse(c["endpoint"])
	if err != nil {
		return o.Namespace
	}
	return cmp.Or(o.Namespace, u.Host)
}

// connection parses a connection string into its parts by lower-case name. No error quotes it.
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
		return nil, errors.New("must contain SharedAccessKeyName and SharedAccessKey, or a SharedAccessSignature")
	}
	return parts, nil
}

// FromURL returns the options of an address for --to, such as azureservicebus://shop.servicebus.windows.net/changes.
// A shared access policy's name and key may precede the host as user and password, and the query may contain
// sessions.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" { // the error could quote part of a key
		return nil, errors.New("want azureservicebus://NAMESPACE.servicebus.windows.net/QUEUE")
	}
	o := &Options{Entity: strings.Trim(u.Path, "/")}
	if err := (sink.Query{"sessions": sink.Bool(&o.Sessions)}).Decode(u.RawQuery, ""); err != nil {
		return nil, err
	}
	key, ok := u.User.Password()
	switch {
	case u.User == nil:
		o.Namespace = u.Host
	case !ok || u.User.Username() == "":
		return nil, errors.New("a user before the host must be a policy's name and key: NAME:KEY@")
	default:
		o.ConnectionString = fmt.Sprintf("Endpoint=sb://%s/;SharedAccessKeyName=%s;SharedAccessKey=%s", u.Host, u.User.Username(), key)
	}
	return o, nil
}
