"""The simulator device: an interpreter of the machine stage on NumPy. Knows neither the front end
nor the CUDA back end: what it runs are the operations that the emitter prints."""
