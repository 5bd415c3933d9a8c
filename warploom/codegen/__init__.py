"""Machine IR to CUDA C++ text. Decides nothing: widths, predicates, barriers and storages come
from the operations. Knows neither the front end nor the simulator nor how the text is compiled."""
