package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// JournalVariable is the environment variable with the default journal, for example in a pod.
const JournalVariable = "TATTLER_JOURNAL"

// Journal returns the default path of the cluster's journal: below XDG_STATE_HOME, in a folder named after the context and
// the server's address, so that a context whose server changes gets another journal.
func (c *Cluster) Journal() (string, error) {
	base, err := xdg("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.Config.Host))
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, c.Name)
	const most = 60
	name = strings.TrimLeft(name[:min(len(name), most)], ".")
	return filepath.Join(base, "tattler", name+"-"+hex.EncodeToString(sum[:4]), "journal.db"), nil
}

// Running returns the directory in which the user's daemons announce themselves: below XDG_STATE_HOME, beside the journals.
func Running() (string, error) {
	base, err := xdg("XDG_STATE_HOME", ".local/state")
	return filepath.Join(base, "tattler", "running"), err
}

// RedactionKey returns the default path of the key for hidden values: below XDG_CONFIG_HOME, apart from the journals.
func RedactionKey() (string, error) {
	base, err := xdg("XDG_CONFIG_HOME", ".config")
	return filepath.Join(base, "tattler", "redaction.key"), err
}

// xdg returns a base directory.
//
// Source: XDG Base Directory Specification 0.8, which says to ignore relative paths.
func xdg(variable, below string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w; set %s", err, variable)
	}
	return filepath.Join(home, below), nil
}
