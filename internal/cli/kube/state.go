package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// JournalVariable names a journal for those who always mean the same one, such as in a pod.
const JournalVariable = "TATTLER_JOURNAL"

// Journal is where the cluster's journal is, unless somebody says otherwise: below XDG_STATE_HOME, in a
// folder that is named after the context and the server's address, so that a context that is pointed at
// another server gets another journal.
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

// Running is where the user's daemons announce themselves: below XDG_STATE_HOME, beside the journals.
func Running() (string, error) {
	base, err := xdg("XDG_STATE_HOME", ".local/state")
	return filepath.Join(base, "tattler", "running"), err
}

// RedactionKey is where the key is that hidden values are hashed with: below XDG_CONFIG_HOME, apart from
// the journals.
func RedactionKey() (string, error) {
	base, err := xdg("XDG_CONFIG_HOME", ".config")
	return filepath.Join(base, "tattler", "redaction.key"), err
}

// xdg is a base directory.
//
// Source: XDG Base Directory Specification 0.8, which has relative paths ignored.
func xdg(variable, below string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for what is kept: %w; set %s", err, variable)
	}
	return filepath.Join(home, below), nil
}
