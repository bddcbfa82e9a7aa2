/*
Copyright 2019 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Adapted from k8s.io/client-go v0.37.2, tools/cache/thread_safe_store_test.go. What was changed is in README.md.

package clientgo

import (
	. "k8s.io/client-go/tools/cache"

	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testThreadSafeStoreDeleteRemovesEmptySetsFromIndex(t *testing.T) {
	testIndexer := "testIndexer"

	indexers := Indexers{
		testIndexer: func(obj interface{}) (strings []string, e error) {
			indexes := []string{valueOf(obj)}
			return indexes, nil
		},
	}

	store := newIndexer(indexers)

	testKey := "testKey"

	store.Add(object(testKey, testKey))

	// Assumption check, there should be a set for the `testKey` with one element in the added index
	set, _ := store.IndexKeys(testIndexer, testKey)

	if len(set) != 1 {
		t.Errorf("Initial assumption of index backing string set having 1 element failed. Actual elements: %d", len(set))
		return
	}

	store.Delete(object(testKey, ""))
	set = store.ListIndexFuncValues(testIndexer)
	present := slices.Contains(set, testKey)

	if present {
		t.Errorf("Index backing string set not deleted from index. Set length: %d", len(set))
	}
}

func testThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex(t *testing.T) {
	testIndexer := "testIndexer"
	testIndex := "testIndex"

	indexers := Indexers{
		testIndexer: func(obj interface{}) (strings []string, e error) {
			indexes := []string{testIndex}
			return indexes, nil
		},
	}

	store := newIndexer(indexers)

	store.Add(object("retain", "retain"))
	store.Add(object("delete", "delete"))

	// Assumption check, there should be a set for the `testIndex` with two elements
	set, _ := store.IndexKeys(testIndexer, testIndex)

	if len(set) != 2 {
		t.Errorf("Initial assumption of index backing string set having 2 elements failed. Actual elements: %d", len(set))
		return
	}

	store.Delete(object("delete", ""))
	set, _ = store.IndexKeys(testIndexer, testIndex)
	present := slices.Contains(store.ListIndexFuncValues(testIndexer), testIndex)

	if !present {
		t.Errorf("Index backing string set erroneously deleted from index.")
		return
	}

	if len(set) != 1 {
		t.Errorf("Index backing string set has incorrect length, expect 1. Set length: %d", len(set))
	}
}

func testThreadSafeStoreIndexingFunctionsWithMultipleValues(t *testing.T) {
	testIndexer := "testIndexer"

	indexers := Indexers{
		testIndexer: func(obj interface{}) ([]string, error) {
			return strings.Split(valueOf(obj), ","), nil
		},
	}

	store := newIndexer(indexers)

	store.Add(object("key1", "foo"))
	store.Add(object("key2", "bar"))

	assert := assert.New(t)

	compare := func(key string, expected []string) error {
		values, err := store.IndexKeys(testIndexer, key)
		if err != nil {
			return err
		}
		if cmp.Equal(values, expected) {
			return nil
		}
		return fmt.Errorf("unexpected index for key %s, diff=%s", key, cmp.Diff(values, expected))
	}

	assert.NoError(compare("foo", []string{"key1"}))
	assert.NoError(compare("bar", []string{"key2"}))

	store.Update(object("key2", "foo,bar"))

	assert.NoError(compare("foo", []string{"key1", "key2"}))
	assert.NoError(compare("bar", []string{"key2"}))

	store.Update(object("key1", "foo,bar"))

	assert.NoError(compare("foo", []string{"key1", "key2"}))
	assert.NoError(compare("bar", []string{"key1", "key2"}))

	store.Add(object("key3", "foo,bar,baz"))

	assert.NoError(compare("foo", []string{"key1", "key2", "key3"}))
	assert.NoError(compare("bar", []string{"key1", "key2", "key3"}))
	assert.NoError(compare("baz", []string{"key3"}))

	store.Update(object("key1", "foo"))

	assert.NoError(compare("foo", []string{"key1", "key2", "key3"}))
	assert.NoError(compare("bar", []string{"key2", "key3"}))
	assert.NoError(compare("baz", []string{"key3"}))

	store.Update(object("key2", "bar"))

	assert.NoError(compare("foo", []string{"key1", "key3"}))
	assert.NoError(compare("bar", []string{"key2", "key3"}))
	assert.NoError(compare("baz", []string{"key3"}))

	store.Delete(object("key1", ""))

	assert.NoError(compare("foo", []string{"key3"}))
	assert.NoError(compare("bar", []string{"key2", "key3"}))
	assert.NoError(compare("baz", []string{"key3"}))

	store.Delete(object("key3", ""))

	assert.NoError(compare("foo", []string{}))
	assert.NoError(compare("bar", []string{"key2"}))
	assert.NoError(compare("baz", []string{}))
}

// object has the key that theirs is stored under, and its value.
func object(key, value string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key, Annotations: map[string]string{"value": value}}}
}

func valueOf(obj interface{}) string { return obj.(*v1.Pod).Annotations["value"] }
