import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

mesh = keras.distribution.DeviceMesh((4, 2), ["batch", "model"], keras.distribution.list_devices())
layout = keras.distribution.LayoutMap(mesh)
layout[".*up/kernel"] = (None, "model")
layout[".*down/kernel"] = ("model", None)
keras.distribution.set_distribution(keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))

model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(256, activation="relu", name="up"),
        keras.layers.Dense(64, name="down"),
    ]
)
model.compile(optimizer="adam", loss="mse")
x = np.ones((64, 64), "float32")
model.fit(x, x, batch_size=32, epochs=1, verbose=0)
print("loss", model.evaluate(x, x, verbose=0))
