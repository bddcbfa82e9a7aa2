package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/retry"
)

// Update gets an object, changes it and writes it. After a conflict (409) it starts over, up to five times, like
// client-go's retry.RetryOnConflict. change receives the API server's current object, not a cached one, and reports
// whether to write it. get and write call a typed client:
//
//	d, err := controller.Update(ctx, func(ctx context.Context) (*appsv1.Deployment, error) {
//		return client.Get(ctx, key.Name, metav1.GetOptions{})
//	}, setImage, func(ctx context.Context, d *appsv1.Deployment) (*appsv1.Deployment, error) {
//		return client.Update(ctx, d, metav1.UpdateOptions{})
//	})
//
// It returns the object as written, or as read if there was nothing to write.
func Update[T any](ctx context.Context, get func(context.Context) (T, error), change func(T) (bool, error), write func(context.Context, T) (T, error)) (T, error) {
	var obj T
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		if err = ctx.Err(); err != nil {
			return err
		}
		if obj, err = get(ctx); err != nil {
			return err
		}
		changed, err := change(obj)
		if err != nil || !changed {
			return err
		}
		obj, err = write(ctx, obj)
		return err
	})
	if err != nil {
		return obj, fmt.Errorf("update: %w", err)
	}
	return obj, nil
}
