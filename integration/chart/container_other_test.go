//go:build !linux

package chart

import "errors"

func mayMount() bool { return false }

func (*container) become() error { return errors.New("needs Linux") }
