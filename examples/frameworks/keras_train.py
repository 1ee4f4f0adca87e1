"""Training in keras on JAX, with layers of one's own and a layout of the weights."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

mesh = keras.distribution.DeviceMesh((4, 2), ["batch", "model"], keras.distribution.list_devices())
layout = keras.distribution.LayoutMap(mesh)
layout[".*wi/kernel"] = (None, "model")
layout[".*wi/bias"] = ("model",)
layout[".*wo/kernel"] = ("model", None)
keras.distribution.set_distribution(keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))


class MLP(keras.layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.wi = keras.layers.Dense(2048, activation="relu", name="wi")
        self.wo = keras.layers.Dense(512, name="wo")

    def build(self, shape):
        self.wi.build(shape)
        self.wo.build((*shape[:-1], 2048))

    def call(self, x):
        return x + self.wo(self.wi(x))


model = keras.Sequential([keras.Input((512,)), *[MLP(name=f"mlp_{layer}") for layer in range(4)]], name="decoder")
model.compile(optimizer="adam", loss="mse")
x = np.ones((256, 512), "float32")
model.fit(x, x, batch_size=256, epochs=1, verbose=0)
print("loss", model.evaluate(x, x, batch_size=256, verbose=0))
