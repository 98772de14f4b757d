"""Sentences of the benchmark's page that hold for one suite alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SuiteWords", "suite_words"]


@dataclass(frozen=True)
class SuiteWords:
    """What the detectors without a model are, how the protocol differs, and a limit."""

    trivial: str
    protocol: str
    limit: str


_WORDS = {
    "mnist": SuiteWords(
        trivial="“Border ink” is the mean of the outermost pixels, “mean intensity” that of all, "
        "“unusual mean intensity” its distance from that of training images; directions were fixed "
        "beforehand. MNIST digits stand in a black frame, characters of K-MNIST reach the border, "
        "and Omniglot as published is black on white. Where one of these does well, a high AUROC "
        "shows that the set is easy, not that a method is good; the inverted Omniglot, white on "
        "black as the digits are, is the fairer test.",
        protocol="Differences of the protocol itself: the paper's text and its released code "
        "disagree on the network behind its MNIST numbers (LeNet-5 in the text, a spectrally "
        "normalised ResNet-18 in the code); its flow density leaves out the Jacobian of the logit "
        "map and draws new pixel noise at every call, also when it is tested; there, mean and "
        "spread of the log-density come from training images. Which of these a method here shares "
        "is said in the suite's file.",
        limit="The foreign sets differ from MNIST in plain ways; see what detectors without a "
        "model reach.",
    ),
    "cifar10": SuiteWords(
        trivial="Each is the distance of one number of an image (brightness, contrast, mean "
        "difference between neighbours, tint) from its mean over training images; no direction is "
        "chosen. Where one of these does well, a high AUROC shows that the set is easy.",
        protocol="Differences of the protocol itself: the paper z-scores the log-density on the "
        "very rows that network and density were fitted on, which makes unseen images look rarer "
        "than they are; its Deep Ensemble starts all members from the same weights, since a reset "
        "of copies of a spectrally normalised network does not reach them; DAEDL's density sees "
        "augmented images there, DIP-EDL's clean ones. Here all methods see the same clean "
        "rows, and members start apart.",
        limit="CIFAR-100 has classes that are close to CIFAR-10's (pickup truck, bus); GTSRB "
        "stands in where SVHN cannot be had, in a third party's 32 x 32 form: its numbers are "
        "neither SVHN's nor GTSRB's as published.",
    ),
}
_OTHER = SuiteWords(
    trivial="Detectors that look at no shape; directions were fixed beforehand.",
    protocol="What a method here shares with its paper is said in the suite's file.",
    limit="Foreign sets may differ in plain ways; see what detectors without a model reach.",
)


def suite_words(suite: str) -> SuiteWords:
    """The sentences of a suite, by its name."""
    return _WORDS.get(suite, _OTHER)
