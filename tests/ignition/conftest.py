"""Small models run fastest on one thread, the more so where others use the machine too."""

import torch

torch.set_num_threads(1)
