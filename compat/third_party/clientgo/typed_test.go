/*
Copyright The Kubernetes Authors.

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

// Adapted from k8s.io/client-go v0.37.2, tools/cache/typed_test.go. What was changed is in README.md.

package clientgo

import (
	. "k8s.io/client-go/tools/cache"

	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testTypedIndexer(t *testing.T) {
	pod1 := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod1", Labels: map[string]string{"foo": "bar"}}}
	pod2 := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod2", Labels: map[string]string{"foo": "bar"}}}

	informer := construct(nobody, &v1.Pod{}, 0, Indexers{
		"foo": func(obj interface{}) ([]string, error) {
			return []string{obj.(*v1.Pod).Labels["foo"]}, nil
		},
	})
	raw := informer.GetIndexer()
	require.NoError(t, raw.Add(pod1))
	require.NoError(t, raw.Add(pod2))

	typed := NewTypedSharedIndexInformer[*v1.Pod](informer).GetTypedIndexer()

	t.Run("TypedIndex", func(t *testing.T) {
		res, err := typed.TypedIndex("foo", pod1)
		require.NoError(t, err)
		assert.ElementsMatch(t, []*v1.Pod{pod1, pod2}, res)
	})

	t.Run("ByTypedIndex", func(t *testing.T) {
		res, err := typed.ByTypedIndex("foo", "bar")
		require.NoError(t, err)
		assert.ElementsMatch(t, []*v1.Pod{pod1, pod2}, res)
	})

	t.Run("ByTypedIndex-propagates-errors", func(t *testing.T) {
		_, err := typed.ByTypedIndex("does-not-exist", "bar")
		require.Error(t, err)
	})

	t.Run("AddTypedIndexers", func(t *testing.T) {
		err := typed.AddTypedIndexers(TypedIndexers[*v1.Pod]{
			"name": func(obj *v1.Pod) ([]string, error) {
				return []string{obj.Name}, nil
			},
		})
		require.NoError(t, err)

		res, err := raw.ByIndex("name", "pod1")
		require.NoError(t, err)
		assert.Equal(t, []interface{}{pod1}, res)
	})
}
